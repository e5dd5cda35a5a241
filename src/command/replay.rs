//! `replay`: what each policy would have cost. NOT the playing: that is the library's.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use packlight::config::Config;
use packlight::config::narrow::matching;
use packlight::cost::play::Limits;
use packlight::cost::policy::Able;
use packlight::embed::Embeddings;
use packlight::replay::captured::Captured;
use packlight::replay::findings::Findings;
use packlight::replay::grid::{self, Summary};
use packlight::replay::models::{Models, Settings};
use packlight::replay::synthetic::Synthetic;
use packlight::store::Memory;

use super::arguments::Replay;
use super::failure::{self, Failure};
use super::{eval, logging, runtime, serve};

/// Plays logs, or made-up traffic, or the grid. Without one request that can be played it is no success.
pub(crate) fn replay(arguments: &Replay) -> Result<(), Failure> {
    if arguments.grid {
        return all_shapes(arguments.json);
    }
    let config = serve::load(arguments.config.as_deref())?;
    logging::start(None, "warn");
    runtime::run(play(arguments, config))
}

async fn play(arguments: &Replay, config: Config) -> Result<(), Failure> {
    let mut models = Models::new(settings(arguments, &config));
    if let Some(text) = &arguments.synthetic {
        let synthetic = Synthetic::read(text).map_err(|error| failed(format!("--synthetic: {error}")))?;
        models.synthetic(&synthetic, arguments.model.as_deref());
    }
    let length = arguments.logs.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
    let bar = bar(length, "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left");
    let embeddings = eval::settings(&config);
    let start = move || Embeddings::start(embeddings.clone(), Arc::new(Memory::default()));
    let model = arguments.model.as_deref().unwrap_or_default();
    let mut captured = Captured::new(&config.narrow, model, Box::new(start));
    for path in &arguments.logs {
        let read = models.log(path, &mut captured, &mut |bytes| bar.inc(bytes)).await;
        read.map_err(|error| failed(error.to_string()))?;
    }
    bar.finish_and_clear();
    let findings = Findings::of(&models);
    if let Some(file) = &arguments.html {
        write(file, &findings.html())?;
    }
    failure::print(&if arguments.json { findings.json() + "\n" } else { findings.text() })?;
    if findings.models.is_empty() {
        return Err(failed("no request in these files can be played (log.decisions names the log)".to_owned()));
    }
    Ok(())
}

fn settings(arguments: &Replay, config: &Config) -> Settings {
    let narrow = &config.narrow;
    let append = matching(&narrow.append_models);
    Settings {
        prices: config.prices.clone(),
        limits: Limits {
            retrieved: narrow.max_retrieved_tools.usual(),
            discovered: narrow.max_discovered_tools,
            legs: narrow.max_discovery_legs,
            bound: narrow.max_bound_tools,
            need: narrow.sticky_need,
        },
        cached: !arguments.no_cache,
        life: None,
        append: Box::new(move |model| append.is_match(model)),
    }
}

/// The grid, for models that take declarations in messages and for those that do not.
fn all_shapes(json: bool) -> Result<(), Failure> {
    let bar = bar(grid::shapes(), "{bar:40} {pos} of {len} shapes, {eta} left");
    let kinds = [
        ("models that take declarations (append)", Able { append: true, dispatch: true }),
        ("models that do not (dispatch)", Able { append: false, dispatch: true }),
    ];
    let grids = grid::grid(kinds.map(|(_, able)| able), || bar.inc(1));
    bar.finish_and_clear();
    let summaries: Vec<grid::Figures> =
        kinds.into_iter().zip(&grids).flat_map(|((kind, _), cells)| Summary::figures(kind, cells)).collect();
    failure::print(&if json { grid::json(&summaries) + "\n" } else { grid::text(&summaries) })
}

fn failed(text: String) -> Failure {
    Failure::Run(format!("replay: {text}"))
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| failed(format!("{}: {error}", file.display())))
}

/// On stderr, and only for a person.
fn bar(length: u64, style: &str) -> ProgressBar {
    let target = if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(length), target).with_style(style)
}
