//! The first request of a turn, from its body to its block, as the proxy does it: on a runtime, with the embedder's pool
//! behind it, the demo's roster in front. NOT the clock's figures, NOT a socket.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use packlight::config::Config;
use packlight::config::catalog::Catalog;
use packlight::demo::{CATALOG, ROSTER};
use packlight::embed::builtin::{Builtin, Pool, pool};
use packlight::embed::{Embeddings, Settings};
use packlight::proxy::choose::{Chooser, Request};
use packlight::proxy::history::History;
use packlight::proxy::recall::Remembered;
use packlight::proxy::route::Route;
use packlight::proxy::sent::Sent;
use packlight::store::{Memory, Store};
use packlight::turn::policy::{Asked, Binding};
use packlight::turn::transcript::Transcript;
use packlight::wire::Format;
use tokio::runtime::Runtime;

/// What a chat request goes through until its block stands.
pub struct Turns {
    runtime: Runtime,
    chooser: Chooser,
    embeddings: Arc<Embeddings>,
    route: Route,
}

impl Turns {
    /// Embeds the roster, on one thread.
    pub fn over(builtin: Arc<Builtin>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let mut config = Config::default();
        config.narrow.catalog = Some(Arc::new(Catalog::parse(CATALOG).expect("the demo's catalog")));
        let mut upstream = config.upstreams.into_iter().next().expect("an upstream");
        upstream.narrow = config.narrow;
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let settings = pool::Settings { threads: 1, ..pool::Settings::default() };
        let pool = Pool::start(builtin, settings).expect("a thread");
        let embeddings = {
            let _inside = runtime.enter();
            Embeddings::over(Arc::new(pool), None, &Settings::default(), store.clone())
        };
        let chooser = Chooser::new(embeddings.clone(), History::new(store));
        let turns = Self { runtime, chooser, embeddings, route: Route::new(upstream) };
        turns.first("hello");
        turns
    }

    /// A conversation's first message.
    pub fn first(&self, message: &str) -> Duration {
        self.begin(&format!(r#"{{"role":"user","content":"{message}"}}"#))
    }

    /// One turn on: what the conversation said before is known. `seen`: the reply to it passed by and somebody took time
    /// to read it.
    pub fn later(&self, message: &str, reply: &str, seen: bool) -> Duration {
        if seen {
            self.runtime.block_on(async {
                self.chooser.foresee(reply);
                let before = self.built();
                while self.built() == before {
                    tokio::task::yield_now().await;
                }
            });
        }
        self.begin(&format!(
            r#"{{"role":"user","content":"hello"}},{{"role":"assistant","content":"{reply}"}},
            {{"role":"user","content":"{message}"}}"#
        ))
    }

    /// Vectors made so far.
    fn built(&self) -> u64 {
        self.embeddings.counts().iter().filter(|(what, _)| *what == "built").map(|(_, count)| count).sum()
    }

    fn begin(&self, messages: &str) -> Duration {
        let body = Bytes::from(format!(r#"{{"model":"kimi-k2.6","messages":[{messages}],"tools":{ROSTER}}}"#));
        let asked = Asked { begins: true, ..Asked::default() };
        self.runtime.block_on(async {
            let begun = Instant::now();
            let sent = Sent::plain(Format::OpenAi, "/v1/chat/completions", body);
            let view = sent.view().expect("a request");
            let roster = self.chooser.roster(&self.route, &view, &sent);
            let transcript = Transcript::of(&view, &self.route.policy.query_ignore);
            let request = Request { view: &view, transcript: &transcript, asked: &asked };
            let remembered = Remembered::default();
            let chosen = self.chooser.choose(&self.route, Binding::Replace, roster, &request, &remembered).await;
            let chosen = chosen.expect("a block");
            black_box(chosen.block.slots());
            let took = begun.elapsed();
            assert!(chosen.fresh.is_some_and(|fresh| !fresh.selection.is_empty()), "a message that was known");
            took
        })
    }
}

/// Messages of so many tokens, no two alike, each with the last sentence of a reply.
pub fn messages(builtin: &Builtin, tokens: usize) -> Vec<(String, String)> {
    let whos = ["supplier", "customer", "partner", "director", "lawyer", "manager", "designer"];
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let times = ["morning", "evening", "night"];
    let whom = ["team", "family", "office", "school", "board"];
    let told = |n: usize| {
        let pick = |of: &[&'static str], by: usize| of.get(n / by % of.len()).copied().unwrap_or_default();
        let (who, day, time, whom) = (pick(&whos, 1), pick(&days, 7), pick(&times, 49), pick(&whom, 147));
        let message = format!("Move the meeting with the new {who} to {day} {time} and tell the whole {whom}");
        (message, format!("Shall I ask the {who} and the {whom} for {day} {time}?"))
    };
    (0..7 * 7 * 3 * 5).map(told).filter(|(message, _)| builtin.tokens(message).len() == tokens).collect()
}
