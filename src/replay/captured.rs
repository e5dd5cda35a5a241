//! Captured request bodies -> decision records, ranked as the sidecar would rank them. What a reply called is read from
//! the next request of its conversation, so a record leaves when that one comes, or at the end. NOT a path of its own: it
//! reads, asks and ranks with the code that serves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::narrow::{self, Narrow};
use crate::decision::{Called, Decision, Roster as Sizes, Scored, ToolTokens};
use crate::embed::Embeddings;
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::question::Question;
use crate::turn::policy::{Directory, Order, Policy, Stability};
use crate::turn::roster::Roster;
use crate::turn::transcript::Transcript;
use crate::turn::{memory, search, tokens};
use crate::wire::Format;
use crate::wire::view::ChatView;

/// Between two captured requests: nobody noted when they came.
const SECONDS: f64 = 5.0;
/// Of a ranking, what a record keeps.
const SHOWN: usize = 20;
/// Conversations whose last request is held; of more, all are let go.
const HELD: usize = 4096;

/// Reads bodies in the order in which they were sent.
pub struct Captured {
    start: Box<dyn Fn() -> Arc<Embeddings>>,
    embeddings: Option<Arc<Embeddings>>,
    narrow: Narrow,
    policy: Policy,
    /// For bodies that name none (Gemini's).
    model: String,
    always_on: globset::GlobSet,
    held: HashMap<String, Held>,
    known: HashSet<String>,
    number: u64,
}

struct Held {
    decision: Decision,
    /// Calls in the transcript before its reply.
    calls: usize,
}

#[derive(Deserialize)]
struct Shape {
    contents: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
    system: Option<IgnoredAny>,
    #[serde(default)]
    tools: Vec<ToolShape>,
}

#[derive(Deserialize)]
struct ToolShape {
    input_schema: Option<IgnoredAny>,
}

impl Captured {
    /// `start`: makes the embedder, when the first body comes.
    pub fn new(narrow: &Narrow, model: &str, start: Box<dyn Fn() -> Arc<Embeddings>>) -> Self {
        Self {
            start,
            embeddings: None,
            // One order and directory for all policies that are played, and no cap.
            policy: Policy {
                stability: Stability::Sticky,
                order: Order::Roster,
                directory: Directory::Names,
                ..narrow.policy(usize::MAX)
            },
            narrow: narrow.clone(),
            model: model.to_owned(),
            always_on: narrow::matching(&narrow.always_on),
            held: HashMap::new(),
            known: HashSet::new(),
            number: 0,
        }
    }

    /// Reads one body; records that are whole now go to `take`. `false`: it is no body of a chat.
    pub async fn line(&mut self, line: &[u8], take: &mut dyn FnMut(&Decision)) -> Result<bool, EmbedError> {
        let Some(format) = format(line) else { return Ok(false) };
        let path = format!("/v1beta/models/{}:generateContent", self.model);
        let (Ok(view), Ok(body)) = (format.view(line, &path), std::str::from_utf8(line)) else { return Ok(false) };
        let transcript = Transcript::of(&view, &self.narrow.query_ignore);
        let conversation = memory::conversation("", b"", &view);
        let calls: Vec<&str> =
            view.messages.iter().flat_map(|message| &message.calls).map(|call| call.name.as_ref()).collect();
        let before = self.held.remove(&conversation);
        let same_turn = before.as_ref().filter(|held| held.decision.turn == transcript.turns.len());
        let call = same_turn.map_or(1, |held| held.decision.call + 1);
        if let Some(held) = before {
            take(&held.told(&calls));
        }
        self.number += 1;
        let mut decision = Decision {
            ts: self.number as f64 * SECONDS,
            turn: transcript.turns.len(),
            call,
            wire: format.label().to_owned(),
            model: view.model.to_string(),
            status: 200,
            history_tokens: tokens::quick(body)
                .saturating_sub(tokens::quick(body.get(view.layout.tools.clone()).unwrap_or_default())),
            conversation,
            ..Decision::default()
        };
        if !view.tools.is_empty() {
            self.tools(&mut decision, &view, &transcript).await?;
        }
        let calls = calls.len();
        if self.held.len() >= HELD {
            self.finish(take);
        }
        self.held.insert(decision.conversation.clone(), Held { decision, calls });
        Ok(true)
    }

    /// There are no more: what was held goes, its last reply unknown.
    pub fn finish(&mut self, take: &mut dyn FnMut(&Decision)) {
        let mut held: Vec<Decision> = self.held.drain().map(|(_, held)| held.decision).collect();
        held.sort_by(|a, b| a.ts.total_cmp(&b.ts));
        held.iter().for_each(take);
    }

    async fn tools(
        &mut self,
        decision: &mut Decision,
        view: &ChatView<'_>,
        transcript: &Transcript,
    ) -> Result<(), EmbedError> {
        let roster = Roster::new(&view.tools, &self.policy, &|name| self.narrow.facts(name, &self.always_on));
        let declaration = search::declaration(&self.policy.find_tools_name, &roster);
        decision.roster = Sizes {
            provider_tokens: None,
            count: roster.len(),
            hash: format!("{:016x}", roster.fingerprint()),
            tokens: roster.sizes().all_tokens(),
            find_tools_tokens: tokens::quick(&declaration.description) + SCHEMA,
            tool_tokens: Vec::new(),
        };
        if self.known.insert(decision.roster.hash.clone()) {
            decision.roster.tool_tokens = (0..roster.len())
                .map(|tool| ToolTokens {
                    name: roster.name(tool).to_owned(),
                    tokens: roster.sizes().tokens(tool),
                    always: roster.always(tool),
                })
                .collect();
        }
        // As the sidecar: a roster that is small passes, and a turn is ranked once.
        let small = roster.documents().len() <= self.policy.max_retrieved_tools.bypass();
        if small || decision.call > 1 || transcript.turns.is_empty() {
            return Ok(());
        }
        let embeddings = Arc::clone(self.embeddings.get_or_insert_with(|| (self.start)()));
        let space = embeddings.space(roster.documents()).await?;
        let question = space.index.focus(Question::of(&transcript.dialogue()));
        let vectors = embeddings.queries(&space.model, question.texts()).await?;
        if decision.turn > 1 && question.contentless(&vectors, &space.bank) {
            return Ok(());
        }
        let ranked = space.index.rank(&question, &vectors);
        decision.selected = Some(self.policy.selects(&ranked, &space.index.named(&question)).count);
        decision.selection = ranked
            .into_iter()
            .take(SHOWN)
            .filter_map(|scored| {
                let name = roster.name(roster.tool_of(scored.tool)?).to_owned();
                Some(Scored { name, score: scored.score })
            })
            .collect();
        Ok(())
    }
}

impl Held {
    /// With what its reply called, as the next request of its conversation shows it.
    fn told(self, calls: &[&str]) -> Decision {
        let called = calls.get(self.calls..).unwrap_or_default().iter();
        let called = called.map(|name| Called { name: (*name).to_owned(), ..Called::default() }).collect();
        Decision { called, ..self.decision }
    }
}

/// Tokens of the declaration of `find_tools` beside its description.
const SCHEMA: u64 = 60;

fn format(line: &[u8]) -> Option<Format> {
    let shape: Shape = serde_json::from_slice(line).ok()?;
    if shape.contents.is_some() {
        return Some(Format::Gemini);
    }
    shape.messages?;
    let anthropic = shape.system.is_some() || shape.tools.iter().any(|tool| tool.input_schema.is_some());
    Some(if anthropic { Format::Anthropic } else { Format::OpenAi })
}
