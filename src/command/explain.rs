//! `explain`: why a message gets the tools it gets. NOT the taking apart: that is the library's.

use std::sync::Arc;

use packlight::config::catalog::Catalog;
use packlight::embed::Embeddings;
use packlight::eval::input::{self, Tools};
use packlight::explain::{self, Options};
use packlight::retrieval::question::Utterance;
use packlight::store::Memory;

use super::arguments::Explain;
use super::eval::{chosen_head, failed, settings};
use super::failure::{self, Failure};
use super::{logging, runtime, serve};

pub(crate) fn explain(arguments: &Explain) -> Result<(), Failure> {
    let config = serve::load(arguments.asked.config.as_deref())?;
    logging::start(None, "warn");
    let overlay = match &arguments.overlay {
        Some(path) => Arc::new(Catalog::read(path).map_err(|problems| Failure::settings(Some(path), problems))?),
        None => config.narrow.catalog.clone().unwrap_or_default(),
    };
    let dialogue = match (&arguments.messages, &arguments.message) {
        (Some(path), _) => {
            let refused = |why: String| Failure::Run(format!("{}: {why}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
            input::dialogue(&text, &config.narrow.query_ignore).map_err(refused)?
        }
        (None, message) => {
            vec![Utterance { text: message.clone().unwrap_or_default(), reply_before: String::new() }]
        }
    };
    if dialogue.last().is_none_or(|last| last.text.trim().is_empty()) {
        let why = "the message has no text: a request like this goes in full (reason no_query), nothing is ranked";
        return Err(Failure::Run(why.to_owned()));
    }
    let options = Options {
        tools: Tools::read(&arguments.catalog, &overlay).map_err(failed)?,
        dialogue,
        k: arguments.asked.k.unwrap_or(config.narrow.max_retrieved_tools),
        head: chosen_head(arguments.head.as_deref(), &config)?,
    };
    runtime::run(async {
        let embeddings = Embeddings::start(settings(&config), Arc::new(Memory::default()));
        let explanation = explain::run(&options, &embeddings).await.map_err(failed)?;
        failure::print(&if arguments.asked.json { explanation.json() + "\n" } else { explanation.text() })
    })
}
