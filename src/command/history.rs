//! `history`: forget what was learnt. NOT the learning: that is the sidecar's, with `history = true`.

use packlight::config::StoreKind;
use packlight::proxy::history::KEYS;
use packlight::store::{Op, Redis, Store};

use super::arguments::{History, Past};
use super::failure::{self, Failure};
use super::{runtime, serve};

/// Clears the shared store. A sidecar without one keeps its history in memory: it ends with the process.
pub(crate) fn history(arguments: &History) -> Result<(), Failure> {
    let Past::Clear { config } = &arguments.what;
    let config = serve::load(config.as_deref())?;
    if config.store.kind == StoreKind::Memory {
        let text = "store.kind is memory: the history is the sidecar's own and ends with it, restart it to clear it\n";
        return failure::print(text);
    }
    runtime::run(async {
        let redis = Redis::new(config.store.url.reveal(), &config.store.prefix)
            .map_err(|error| Failure::Run(format!("store.url {error}")))?;
        let forgotten = redis.forget(Op::HistoryPut, KEYS).await;
        if redis.errors().iter().any(|(_, count)| *count > 0) {
            return Err(Failure::Run("redis cannot be reached or does not answer in time: nothing is certain".into()));
        }
        failure::print(&format!("{forgotten} keys of the history are gone\n"))
    })
}
