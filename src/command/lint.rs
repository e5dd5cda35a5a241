//! `lint`: what makes a roster hard to search. NOT the looking: that is the library's.

use std::sync::Arc;

use packlight::embed::Embeddings;
use packlight::eval::sets::Set;
use packlight::lint::{self, Kind};
use packlight::store::Memory;

use super::arguments::Lint;
use super::eval::{failed, options, settings};
use super::failure::{self, Failure};
use super::{logging, runtime, serve};

/// Prints what is found. It is no success when anything is.
pub(crate) fn lint(arguments: &Lint) -> Result<(), Failure> {
    let config = serve::load(arguments.asked.config.as_deref())?;
    logging::start(None, "warn");
    let unknown = arguments.ignore.iter().find(|name| !Kind::ALL.iter().any(|kind| kind.label() == **name));
    if let Some(name) = unknown {
        let known = Kind::ALL.map(Kind::label).join(", ");
        return Err(Failure::Run(format!("there are no findings of kind `{name}`, only {known}")));
    }
    let mut options = options(&arguments.cases, &config, arguments.asked.k)?;
    if options.sets.is_empty() {
        let overlay = &arguments.cases.overlay;
        let roster = |catalog| Set { catalog: Some(catalog), overlay: overlay.clone(), ..Set::default() };
        options.sets = arguments.cases.catalog.iter().cloned().map(roster).collect();
    }
    if options.sets.is_empty() {
        return Err(Failure::Run("nothing to look at: --catalog, or --sets".to_owned()));
    }
    runtime::run(async {
        let embeddings = Embeddings::start(settings(&config), Arc::new(Memory::default()));
        let mut findings = lint::run(&options, &embeddings).await.map_err(failed)?;
        findings.retain(|finding| !arguments.ignore.iter().any(|name| name == finding.kind.label()));
        failure::print(&if arguments.asked.json { lint::json(&findings) + "\n" } else { lint::text(&findings) })?;
        match findings.len() {
            0 => Ok(()),
            count => Err(Failure::Run(format!("{count} findings"))),
        }
    })
}
