//! `eval`: how often the selection holds what a request needs. NOT the counting: that is the library's.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use packlight::config::Config;
use packlight::config::narrow::HeadFile;
use packlight::embed::{Embeddings, Settings};
use packlight::eval::gate::{Gate, Passage};
use packlight::eval::measure::Measured;
use packlight::eval::{self, Options, Report, compare, page, sets, sweep};
use packlight::retrieval::head::Head;
use packlight::retrieval::width::Width;
use packlight::store::Memory;

use super::arguments::{Cases, Eval};
use super::failure::{self, Failure};
use super::{logging, runtime, serve};

/// Prints the report. It is no success when the measurement is not worth its name or a gate does not hold.
pub(crate) fn eval(arguments: Eval) -> Result<(), Failure> {
    logging::start(None, "warn");
    if let [first, second] = arguments.compare.as_slice() {
        return runtime::run(comparison(&arguments, first, second));
    }
    let config = serve::load(arguments.asked.config.as_deref())?;
    let options = options(&arguments.cases, &config, arguments.asked.k)?;
    runtime::run(async {
        let (measured, model) = measured(&config, &options).await?;
        let report = Report::of(&measured, options.k, &model);
        let sweeps = sweep::sweeps(&report);
        let passages: Vec<Passage> = arguments.min.iter().flat_map(|gate: &Gate| gate.passages(&report)).collect();
        if let Some(path) = &arguments.html {
            write(path, page::page(&report, &sweeps, &passages))?;
        }
        let swept = arguments.sweep.is_some();
        failure::print(&if arguments.asked.json {
            let sweeps = swept.then_some(&sweeps);
            let whole = serde_json::json!({ "report": report, "sweep": sweeps, "gates": passages });
            serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
        } else {
            let mut text = report.text();
            text.extend(swept.then(|| sweep::text(&sweeps)));
            text.extend(passages.iter().map(|passage| format!("{}\n", passage.line)));
            text
        })?;
        if passages.iter().any(|passage| !passage.passed) {
            return Err(Failure::Run("a figure is below its --min".to_owned()));
        }
        if arguments.allow_gaps || report.passed() {
            Ok(())
        } else {
            Err(Failure::Run("the measurement has gaps: see the report, or --allow-gaps".to_owned()))
        }
    })
}

/// The same cases under two configurations.
async fn comparison(arguments: &Eval, first: &Path, second: &Path) -> Result<(), Failure> {
    let mut both = Vec::new();
    for path in [first, second] {
        let config = serve::load(Some(path))?;
        let options = options(&arguments.cases, &config, arguments.asked.k)?;
        both.push(measured(&config, &options).await?.0);
    }
    let [a, b] = both.as_slice() else { return Ok(()) };
    let compared = compare::compared(a, b);
    let names = (first.display().to_string(), second.display().to_string());
    let names = (names.0.as_str(), names.1.as_str());
    if let Some(path) = &arguments.html {
        write(path, page::comparison(&compared, names))?;
    }
    failure::print(&if arguments.asked.json {
        let whole = serde_json::json!({ "a": names.0, "b": names.1, "compared": compared });
        serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
    } else {
        compare::text(&compared, names)
    })
}

async fn measured(config: &Config, options: &Options) -> Result<(Vec<Measured>, String), Failure> {
    if options.sets.is_empty() {
        return Err(Failure::Run("nothing to measure: --cases or --sets".to_owned()));
    }
    let embeddings = Embeddings::start(settings(config), Arc::new(Memory::default()));
    eval::measured(options, &embeddings).await.map_err(failed)
}

/// What the arguments name, under these settings.
pub(super) fn options(cases: &Cases, config: &Config, k: Option<Width>) -> Result<Options, Failure> {
    let narrow = &config.narrow;
    let mut named = match &cases.sets {
        Some(path) => sets::file(path).map_err(failed)?,
        None => Vec::new(),
    };
    if !cases.cases.is_empty() {
        named.extend(sets::paired(&cases.catalog, &cases.cases, cases.overlay.as_ref()).map_err(failed)?);
    }
    Ok(Options {
        sets: named,
        k: k.unwrap_or(narrow.max_retrieved_tools),
        ignore: narrow.query_ignore.clone(),
        overlay: narrow.catalog.clone(),
        head: chosen_head(cases.head.as_deref(), config)?,
    })
}

/// The embedder of a command that measures: nobody waits behind it, and what it embedded it keeps.
pub(super) fn settings(config: &Config) -> Settings {
    Settings { keep_queries: true, fallback: false, ..config.embeddings.settings(PATIENCE) }
}

pub(super) fn failed(problem: eval::Problem) -> Failure {
    Failure::Run(problem.to_string())
}

pub(super) fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))
}

/// The head that is named, else the configuration's.
pub(super) fn chosen_head(named: Option<&Path>, config: &Config) -> Result<Option<Arc<Head>>, Failure> {
    match named {
        Some(path) => HeadFile::read(path).map(|file| Some(file.head)).map_err(Failure::Run),
        None => Ok(config.narrow.head.as_ref().map(|file| Arc::clone(&file.head))),
    }
}

/// A large roster takes its time on a small machine.
const PATIENCE: Duration = Duration::from_secs(600);
