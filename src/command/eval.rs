//! `eval`: how often the selection holds what a request needs. NOT the counting: that is the library's.

use std::sync::Arc;
use std::time::Duration;

use packlight::config::Config;
use packlight::embed::{Embeddings, Settings};
use packlight::eval::{self, Options, sets};
use packlight::store::Memory;

use super::arguments::{Cases, Eval};
use super::failure::{self, Failure};
use super::{logging, runtime, serve};

/// Prints the report. It is no success when the measurement is not worth its name.
pub(crate) fn eval(arguments: Eval) -> Result<(), Failure> {
    let config = serve::load(arguments.config.as_deref())?;
    logging::start(None, "warn");
    let options = options(&arguments.cases, &config, arguments.k)?;
    runtime::run(async {
        let embeddings = Embeddings::start(settings(&config), Arc::new(Memory::default()));
        let report = eval::run(&options, &embeddings).await.map_err(failed)?;
        failure::print(&if arguments.json { report.json() + "\n" } else { report.text() })?;
        if arguments.allow_gaps || report.passed() {
            Ok(())
        } else {
            Err(Failure::Run("the measurement has gaps: see the report, or --allow-gaps".to_owned()))
        }
    })
}

/// What the arguments name, under these settings.
pub(super) fn options(cases: &Cases, config: &Config, k: Option<usize>) -> Result<Options, Failure> {
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
    })
}

/// The embedder of a command that measures: nobody waits behind it, and what it embedded it keeps.
pub(super) fn settings(config: &Config) -> Settings {
    Settings { keep_queries: true, ..config.embeddings.settings(PATIENCE) }
}

pub(super) fn failed(problem: eval::Problem) -> Failure {
    Failure::Run(problem.to_string())
}

/// A large roster takes its time on a small machine.
const PATIENCE: Duration = Duration::from_secs(600);
