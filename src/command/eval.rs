//! `eval`: how often the selection holds what a request needs. NOT the counting: that is the library's.

use std::sync::Arc;
use std::time::Duration;

use packlight::embed::Embeddings;
use packlight::eval::{self, Options};
use packlight::store::Memory;

use super::arguments::Eval;
use super::failure::{self, Failure};
use super::{logging, runtime, serve};

/// Prints the report. It is no success when the measurement is not worth its name.
pub(crate) fn eval(arguments: Eval) -> Result<(), Failure> {
    let config = serve::load(arguments.config.as_deref())?;
    logging::start(None, "warn");
    runtime::run(async {
        let embeddings = Embeddings::start(config.embeddings.settings(PATIENCE), Arc::new(Memory::default()));
        let Eval { catalog, cases, overlay, k, json, .. } = arguments;
        let report = eval::run(Options { catalog, cases, overlay, k }, &embeddings).await;
        let report = report.map_err(|error| Failure::Run(error.to_string()))?;
        failure::print(&if json { report.json() + "\n" } else { report.text() })?;
        if report.passed() { Ok(()) } else { Err(Failure::Run("the measurement has gaps: see the report".to_owned())) }
    })
}

/// Nobody waits behind it, and a large roster takes its time on a small machine.
const PATIENCE: Duration = Duration::from_secs(600);
