//! `tune`: learns a head from labelled requests or decision logs and writes it if it helps. NOT the learning: that is
//! the library's.

use std::sync::Arc;

use packlight::embed::Embeddings;
use packlight::eval::sets::Set;
use packlight::store::Memory;
use packlight::tune::{self, Options};

use super::arguments::{Asked, Tune};
use super::eval::{options, settings, write};
use super::failure::{self, Failure};
use super::{logging, runtime, serve};

/// Prints what is gained. It is no success when nothing is, and then nothing is written.
pub(crate) fn tune(arguments: Tune) -> Result<(), Failure> {
    let config = serve::load(arguments.asked.config.as_deref())?;
    logging::start(None, "warn");
    let Tune { logs, cases, leave_out, out, force, asked: Asked { k, json, .. } } = arguments;
    let log_set = Set { catalog: cases.catalog.first().cloned(), overlay: cases.overlay.clone(), ..Set::default() };
    let options = Options { eval: options(&cases, &config, k)?, logs, log_set, leave_out };
    runtime::run(async {
        let embeddings = Embeddings::start(settings(&config), Arc::new(Memory::default()));
        let learnt = tune::run(&options, &embeddings).await.map_err(|error| Failure::Run(error.to_string()))?;
        let verdict = learnt.report.verdict();
        failure::print(&if json { learnt.report.json() + "\n" } else { learnt.report.text() })?;
        if verdict.is_err() && !force {
            return Err(Failure::Run("nothing is written: --force writes it all the same".to_owned()));
        }
        let shown = out.display();
        write(&out, learnt.head.to_bytes())?;
        let how = "an upstream uses it with `narrow.head`";
        if json { Ok(()) } else { failure::print(&format!("Written: {shown} ({}); {how}.\n", learnt.head.id())) }
    })
}
