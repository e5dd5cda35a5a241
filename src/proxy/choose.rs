//! From a transcript to a block: the waiting around `turn::fold`. A turn that is
//! known costs a look-up; a new one embeds its message and ranks. NOT deciding
//! (turn), NOT ranking (retrieval), NOT sending.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use xxhash_rust::xxh3::Xxh3;

use super::route::Route;
use crate::embed::{self, Embeddings, Space};
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::question::{Question, Utterance};
use crate::turn::bypass::Bypass;
use crate::turn::fold::{Block, Selection};
use crate::turn::policy::Asked;
use crate::turn::roster::Roster;
use crate::turn::transcript::Transcript;
use crate::wire::request::Restored;
use crate::wire::view::{ChatView, Choice};

/// Bytes of rosters remembered, roughly; one is some 30 KB for 44 tools.
const ROSTERS: u64 = 32 << 20;
/// Bytes of turns remembered, roughly; one is some hundred bytes.
const FOLDS: u64 = 16 << 20;
/// A turn that nobody asks about for so long is forgotten: a cold replica recomputes it.
const FOLD_IDLE: Duration = Duration::from_secs(3600);
/// The longest a search by the model waits for its vector.
const SEARCH_DEADLINE: Duration = Duration::from_secs(3);
/// How many of a selection are kept: the record shows 20, the fold needs `max_retrieved_tools`.
const SHOWN: usize = 20;

/// Chooses blocks and remembers what it chose.
#[derive(Debug)]
pub struct Chooser {
    embeddings: Arc<Embeddings>,
    rosters: Cache<u128, Arc<Roster>>,
    folds: Cache<u128, Arc<Block>>,
    /// Memo keys are seeded: nobody outside can make two rosters share one.
    seed: u64,
}

/// What a request gets.
#[derive(Debug)]
pub struct Chosen {
    pub roster: Arc<Roster>,
    pub block: Block,
    /// How it was chosen; `None`: the turn was known.
    pub fresh: Option<Fresh>,
    /// Tools that a search found in this turn, in earlier requests.
    pub discovered: BTreeSet<usize>,
}

/// What choosing took and found.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Best first.
    pub selection: Vec<(String, f32)>,
    pub embed: Duration,
    pub rank: Duration,
}

impl Chooser {
    pub fn new(embeddings: Arc<Embeddings>) -> Self {
        Self {
            embeddings,
            // Both by bytes: an agent may send a roster of any size, and another one each time.
            rosters: Cache::builder()
                .max_capacity(ROSTERS)
                .weigher(|_: &u128, roster: &Arc<Roster>| u32::try_from(roster.weight()).unwrap_or(u32::MAX))
                .build(),
            folds: Cache::builder()
                .max_capacity(FOLDS)
                .weigher(|_: &u128, block: &Arc<Block>| u32::try_from(block.weight()).unwrap_or(u32::MAX))
                .time_to_idle(FOLD_IDLE)
                .build(),
            seed: RandomState::new().hash_one("packlight"),
        }
    }

    pub fn embeddings(&self) -> &Embeddings {
        &self.embeddings
    }

    /// The roster of a request, read once per distinct `tools` value. `body`: the text that `view` was read from.
    pub fn roster(&self, route: &Route, view: &ChatView<'_>, body: &str) -> Arc<Roster> {
        let mut hash = Xxh3::with_seed(self.seed);
        route.upstream.name.hash(&mut hash);
        body.get(view.layout.tools.clone()).unwrap_or_default().hash(&mut hash);
        self.rosters.get_with(hash.digest128(), || {
            Arc::new(Roster::new(&view.tools, body, &route.policy, &|name| route.facts(name)))
        })
    }

    /// The block of this transcript.
    pub async fn choose(
        &self,
        route: &Route,
        roster: Arc<Roster>,
        view: &ChatView<'_>,
        transcript: &Transcript,
        asked: &Asked,
        restored: &[Restored],
    ) -> Result<Chosen, Bypass> {
        let keys = self.keys(&roster, transcript, asked);
        let known = keys.iter().rposition(|key| self.folds.contains_key(key));
        let mut block = known.and_then(|turn| keys.get(turn)).and_then(|key| self.folds.get(key)).map(|b| (*b).clone());
        let mut fresh = None;
        let next = if block.is_some() { known.map_or(0, |turn| turn + 1) } else { 0 };
        if next < transcript.turns.len() {
            let mut times = Fresh::default();
            let space = self.embeddings.space(roster.documents()).await?;
            let dialogue = transcript.dialogue();
            for turn in next..transcript.turns.len() {
                let selection =
                    self.select(&space, &roster, dialogue.get(..=turn).unwrap_or_default(), asked, &mut times).await?;
                let mut chosen = match block {
                    None => Block::begin(&roster, &route.policy, &selection),
                    Some(mut before) => {
                        happened(&mut before, &roster, transcript, turn - 1, restored);
                        before.turn(&roster, &route.policy, &selection, &called(&roster, transcript, turn))
                    }
                };
                if let Some(key) = keys.get(turn) {
                    self.folds.insert(*key, Arc::new(chosen.clone()));
                }
                if turn + 1 < transcript.turns.len() {
                    chosen.cause = None;
                }
                block = Some(chosen);
            }
            fresh = Some(times);
        }
        let Some(mut block) = block else { return Err(Bypass::NoQuery) };
        let discovered = happened(&mut block, &roster, transcript, transcript.turns.len() - 1, restored);
        for name in wishes(asked, &view.choice) {
            for &tool in roster.named(name) {
                block.add(&roster, tool);
            }
        }
        if block.count() + 1 > route.policy.max_tools {
            return Err(Bypass::TooLarge);
        }
        Ok(Chosen { roster, block, fresh, discovered })
    }

    /// What a search of the model's finds among the tools that are not bound: tools, or `None` when there is no such
    /// tool.
    pub async fn search(
        &self,
        chosen: &Chosen,
        query: &str,
        asked: &Asked,
        most: usize,
    ) -> Result<Option<Vec<usize>>, EmbedError> {
        let found = async {
            let space = self.embeddings.space(chosen.roster.documents()).await?;
            let question = space.index.focus(Question::bare(query));
            let embed::Asked { space, vectors } =
                self.embeddings.ask(None, chosen.roster.documents(), question.texts()).await?;
            let hidden = |document: usize| {
                chosen.roster.tool_of(document).is_some_and(|tool| {
                    !chosen.block.contains(tool) && chosen.roster.is_connected(tool, asked.connected.as_ref())
                })
            };
            Ok(space.index.find(query, &vectors, &hidden, most))
        };
        let found = tokio::time::timeout(SEARCH_DEADLINE, found).await.map_err(|_| EmbedError::Timeout)??;
        let tools: Vec<usize> = found.tools.iter().filter_map(|document| chosen.roster.tool_of(*document)).collect();
        Ok((found.matched && !tools.is_empty()).then_some(tools))
    }

    /// One key per turn: all that the fold up to this turn's start depends on. The embedder's identity is not in it: a
    /// turn that was chosen with the fallback's vectors stays chosen.
    fn keys(&self, roster: &Roster, transcript: &Transcript, asked: &Asked) -> Vec<u128> {
        let mut hash = Xxh3::with_seed(self.seed);
        (roster.fingerprint(), &asked.connected).hash(&mut hash);
        transcript
            .turns
            .iter()
            .map(|turn| {
                (&turn.utterance.text, &turn.utterance.reply_before).hash(&mut hash);
                let key = hash.digest128();
                for (_, name) in &turn.called {
                    name.hash(&mut hash);
                }
                key
            })
            .collect()
    }

    async fn select(
        &self,
        space: &Space,
        roster: &Roster,
        dialogue: &[Utterance],
        asked: &Asked,
        times: &mut Fresh,
    ) -> Result<Selection, EmbedError> {
        let question = space.index.focus(Question::of(dialogue));
        let embedding = Instant::now();
        let embed::Asked { space, vectors } = self.embeddings.ask(None, roster.documents(), question.texts()).await?;
        let ranking = Instant::now();
        let scored: Vec<(usize, f32)> = space
            .index
            .rank(&question, &vectors)
            .into_iter()
            .filter_map(|scored| Some((roster.tool_of(scored.tool)?, scored.score)))
            .filter(|(tool, _)| roster.is_connected(*tool, asked.connected.as_ref()))
            .collect();
        times.embed += ranking - embedding;
        times.rank += ranking.elapsed();
        times.selection =
            scored.iter().take(SHOWN).map(|(tool, score)| (roster.name(*tool).to_owned(), *score)).collect();
        let contentless = question.contentless(&vectors, &space.bank);
        Ok(Selection { best: scored.into_iter().map(|(tool, _)| tool).collect(), contentless })
    }
}

/// Adds what happened in a turn to its block: finds of searches that are remembered, and calls, in order. Returns the
/// finds.
fn happened(
    block: &mut Block,
    roster: &Roster,
    transcript: &Transcript,
    turn: usize,
    restored: &[Restored],
) -> BTreeSet<usize> {
    let mut finds = BTreeSet::new();
    let Some(begun) = transcript.turns.get(turn) else { return finds };
    let until = transcript.turns.get(turn + 1).map_or(usize::MAX, |next| next.message);
    let mut events: Vec<(usize, bool, &str)> = Vec::new();
    for reply in restored.iter().filter(|reply| reply.run.start > begun.message && reply.run.start < until) {
        let names = reply.exchanges.iter().flat_map(|exchange| &exchange.found);
        events.extend(names.map(|name| (reply.run.start, true, name.as_str())));
    }
    events.extend(begun.called.iter().map(|(message, name)| (*message, false, name.as_str())));
    // finds stand before the calls of the same reply; the sort is stable
    events.sort_by_key(|(message, found, _)| (*message, !found));
    for (_, found, name) in events {
        for &tool in roster.named(name) {
            block.add(roster, tool);
            if found {
                finds.insert(tool);
            }
        }
    }
    finds
}

/// Every tool called before this turn, in order.
fn called(roster: &Roster, transcript: &Transcript, turn: usize) -> Vec<usize> {
    let names = transcript.turns.iter().take(turn).flat_map(|turn| &turn.called);
    names.flat_map(|(_, name)| roster.named(name)).copied().collect()
}

/// Names that this one request wants bound.
fn wishes<'w>(asked: &'w Asked, choice: &'w Choice<'_>) -> impl Iterator<Item = &'w str> {
    let chosen: &[std::borrow::Cow<'_, str>] = match choice {
        Choice::Only(names) => names,
        Choice::Auto | Choice::None | Choice::Required => &[],
    };
    asked.keep.iter().map(String::as_str).chain(chosen.iter().map(AsRef::as_ref))
}
