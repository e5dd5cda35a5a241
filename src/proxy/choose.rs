//! From a transcript to a block: the waiting around `turn`. A turn that is known
//! costs a look-up; a new one embeds its message and ranks. NOT deciding (turn),
//! NOT ranking (retrieval), NOT sending.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use xxhash_rust::xxh3::Xxh3;

use super::history::{self, History};
use super::learnt::Learnt;
use super::recall::Remembered;
use super::route::Route;
use super::sent::Sent;
use crate::embed::{self, Embeddings, Space};
use crate::retrieval::embedder::EmbedError;
use crate::retrieval::passages;
use crate::retrieval::prior;
use crate::retrieval::question::{Question, Utterance};
use crate::turn::bypass::Bypass;
use crate::turn::fold::{self, Block};
use crate::turn::past::Past;
use crate::turn::policy::{Asked, Binding};
use crate::turn::roster::Roster;
use crate::turn::selection::Selection;
use crate::turn::transcript::Transcript;
use crate::turn::{append, dispatch};
use crate::wire::request::Place;
use crate::wire::view::{ChatView, Choice, ToolKind, ToolView};

/// Bytes of rosters remembered, roughly; one is some 30 KB for 44 tools.
const ROSTERS: u64 = 32 << 20;
/// Bytes of turns remembered, roughly; one is some hundred bytes.
const SELECTIONS: u64 = 16 << 20;
/// A turn that nobody asks about for so long is forgotten: a cold replica recomputes it.
const SELECTION_IDLE: Duration = Duration::from_secs(3600);
/// The longest a search by the model waits for its vector.
const SEARCH_DEADLINE: Duration = Duration::from_secs(3);
/// How many of a selection the record shows.
const SHOWN: usize = 20;

/// Chooses blocks and remembers what it chose.
#[derive(Debug)]
pub struct Chooser {
    embeddings: Arc<Embeddings>,
    rosters: Cache<u128, Arc<Roster>>,
    selections: Cache<u128, Arc<Selection>>,
    history: History,
    /// All of it, for records.
    rankings: Cache<u128, Arc<[u32]>>,
    /// Memo keys are seeded: nobody outside can make two rosters share one.
    seed: u64,
}

/// What a request gets.
#[derive(Debug)]
pub struct Chosen {
    pub roster: Arc<Roster>,
    pub binding: Binding,
    pub block: Block,
    /// How it was chosen; `None`: every turn was known.
    pub fresh: Option<Fresh>,
    /// How many tools were selected for the last turn's message.
    pub selected: usize,
    /// Id of the head that had a part in the last turn's selection.
    pub head: Option<Arc<str>>,
    /// What searches are bent with.
    pub learnt: Option<Arc<Learnt>>,
    /// Tools that a search found in this turn, in earlier requests.
    pub discovered: BTreeSet<usize>,
    /// Every tool that may be withheld, best first for this turn.
    pub ranking: Option<Arc<[u32]>>,
}

/// What an agent sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    pub view: &'r ChatView<'r>,
    pub transcript: &'r Transcript,
    pub asked: &'r Asked,
}

/// What choosing took and found.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Best first.
    pub selection: Vec<(String, f32)>,
    /// Of the question's passages, and whose they are.
    pub vectors: Vec<Arc<[f32]>>,
    pub model: Option<Arc<str>>,
    /// All of it.
    pub ranking: Option<Arc<[u32]>>,
    pub embed: Duration,
    pub rank: Duration,
}

impl Chooser {
    pub fn new(embeddings: Arc<Embeddings>, history: History) -> Self {
        Self {
            embeddings,
            history,
            // Both by bytes: an agent may send a roster of any size, and another one each time.
            rosters: Cache::builder()
                .max_capacity(ROSTERS)
                .weigher(|_: &u128, roster: &Arc<Roster>| {
                    // One that is never kept would be read for every request.
                    u32::try_from(roster.weight()).unwrap_or(u32::MAX).min((ROSTERS / 2) as u32)
                })
                .build(),
            selections: Cache::builder()
                .max_capacity(SELECTIONS)
                .weigher(|_: &u128, selection: &Arc<Selection>| u32::try_from(selection.weight()).unwrap_or(u32::MAX))
                .time_to_idle(SELECTION_IDLE)
                .build(),
            rankings: Cache::builder()
                .max_capacity(SELECTIONS)
                .weigher(|_: &u128, ranking: &Arc<[u32]>| u32::try_from(100 + 4 * ranking.len()).unwrap_or(u32::MAX))
                .time_to_idle(SELECTION_IDLE)
                .build(),
            seed: RandomState::new().hash_one("packlight"),
        }
    }

    pub fn embeddings(&self) -> &Embeddings {
        &self.embeddings
    }

    /// The roster of a request, read once per distinct `tools` value, and of a catalog once per version. `view`: of what
    /// was sent.
    pub fn roster(&self, route: &Route, view: &ChatView<'_>, sent: &Sent) -> Arc<Roster> {
        let mut hash = Xxh3::with_seed(self.seed);
        route.upstream.name.hash(&mut hash);
        sent.text().get(view.layout.tools.clone()).unwrap_or_default().hash(&mut hash);
        sent.catalog().map(|catalog| catalog.digest()).hash(&mut hash);
        // Pinned ones behind a catalog's are made up from the transcript.
        let apart = |tool: &&ToolView<'_>| matches!(tool.kind, ToolKind::Placed | ToolKind::Pinned);
        for tool in view.tools.iter().filter(apart) {
            tool.text.hash(&mut hash);
        }
        self.rosters
            .get_with(hash.digest128(), || Arc::new(Roster::new(&view.tools, &route.policy, &|name| route.facts(name))))
    }

    /// The block of this transcript.
    pub async fn choose(
        &self,
        route: &Route,
        binding: Binding,
        roster: Arc<Roster>,
        request: &Request<'_>,
        remembered: &Remembered,
    ) -> Result<Chosen, Bypass> {
        let Request { view, transcript, asked } = *request;
        let (selections, fresh, ranking) = self.selections(route, &roster, transcript, asked).await?;
        let Remembered { restored, expired, .. } = remembered;
        let past = Past { roster: &roster, transcript, restored, expired };
        let block = match binding {
            Binding::Dispatch => dispatch::block(&past, &route.policy, &selections),
            Binding::Append => append::block(&past, &route.policy, &selections),
            Binding::Replace => fold::block(&past, &route.policy, &selections),
        };
        let Some(mut block) = block else { return Err(Bypass::NoQuery) };
        let wished = wishes(asked, &view.choice).flat_map(|name| roster.named(name)).copied();
        match binding {
            Binding::Dispatch => wished.for_each(|tool| block.insist(&roster, tool)),
            Binding::Append | Binding::Replace => {
                block.declare(&roster, Place::Behind(view.messages.len().saturating_sub(1)), wished);
            }
        }
        if block.declarations(binding) > route.policy.max_tools {
            return Err(Bypass::TooLarge);
        }
        let discovered = past.found();
        let last = selections.last();
        let (selected, head) = (last.map_or(0, |last| last.best.len()), last.and_then(|last| last.head.clone()));
        let learnt = route.learnt.clone();
        Ok(Chosen { roster, binding, block, fresh, selected, head, learnt, discovered, ranking })
    }

    /// What each turn selected; how, where one was not known. With a history, a turn
    /// whose first request this is is chosen with what has been learnt since the same was asked before; later requests of the
    /// turn, on whatever replica, take what it chose.
    async fn selections(
        &self,
        route: &Route,
        roster: &Roster,
        transcript: &Transcript,
        asked: &Asked,
    ) -> Result<(Vec<Selection>, Option<Fresh>, Option<Arc<[u32]>>), Bypass> {
        let keys = self.keys(route, roster, transcript, asked);
        let mut known: Vec<Option<Arc<Selection>>> = keys.iter().map(|key| self.selections.get(key)).collect();
        let anew = route.history && asked.begins;
        if let Some(last) = known.last_mut().filter(|_| anew) {
            *last = None;
        }
        if known.iter().all(Option::is_some) {
            let ranking = keys.last().and_then(|key| self.rankings.get(key));
            return Ok((known.into_iter().flatten().map(Arc::unwrap_or_clone).collect(), None, ranking));
        }
        let mut times = Fresh::default();
        let space = self.embeddings.space(roster.documents()).await?;
        let dialogue = transcript.dialogue();
        let mut selections = Vec::with_capacity(keys.len());
        let mut ranking = None;
        for (turn, (key, known)) in keys.into_iter().zip(known).enumerate() {
            let selection = match known {
                Some(known) => {
                    ranking = self.rankings.get(&key);
                    Arc::unwrap_or_clone(known)
                }
                None => {
                    let dialogue = dialogue.get(..=turn).unwrap_or_default();
                    let shared = route.history.then(|| turn_key(route, roster, dialogue, asked));
                    let kept = match &shared {
                        Some(key) if !(anew && turn + 1 == transcript.turns.len()) => {
                            self.history.chosen(key, roster).await
                        }
                        _ => None,
                    };
                    let selection = match kept {
                        Some(kept) => kept,
                        None => {
                            let chosen = self.select(route, &space, roster, dialogue, asked, &mut times).await?;
                            ranking.clone_from(&times.ranking);
                            if let Some(all) = &ranking {
                                self.rankings.insert(key, all.clone());
                            }
                            chosen
                        }
                    };
                    if let Some(key) = &shared {
                        self.history.keep(key, roster, &selection).await;
                    }
                    self.selections.insert(key, Arc::new(selection.clone()));
                    selection
                }
            };
            selections.push(selection);
        }
        Ok((selections, Some(times), ranking))
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
            let vectors = Learnt::bent(chosen.learnt.as_ref(), &space.model, vectors);
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

    /// One key per turn: all that its selection depends on. The embedder's identity is not in it: a turn that was chosen
    /// with the fallback's vectors stays chosen.
    fn keys(&self, route: &Route, roster: &Roster, transcript: &Transcript, asked: &Asked) -> Vec<u128> {
        let mut hash = Xxh3::with_seed(self.seed);
        (roster.fingerprint(), &asked.connected).hash(&mut hash);
        if route.history {
            asked.conversation.hash(&mut hash);
        }
        transcript
            .turns
            .iter()
            .map(|turn| {
                (&turn.utterance.text, &turn.utterance.reply_before).hash(&mut hash);
                hash.digest128()
            })
            .collect()
    }

    async fn select(
        &self,
        route: &Route,
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
        let mut priors = roster.standings().to_vec();
        if route.history
            && let Some(ask) = question.ask(&vectors, &space.bank).and_then(|ask| prior::centred(ask, &space.bank))
        {
            let past = self.history.past(&history::scope(&route.upstream.name, &asked.payer, &space.model)).await;
            for (prior, more) in priors.iter_mut().zip(past.priors(roster.documents(), &ask)) {
                *prior += more;
            }
        }
        let head = route.learnt.as_ref().and_then(|learnt| learnt.head(&space.model));
        let question = match &head {
            Some(head) => question.bent(head, &vectors),
            None => question,
        };
        let mut ranked = space.index.rank_with(&question, &vectors, &priors);
        ranked.retain(|scored| {
            roster.tool_of(scored.tool).is_some_and(|tool| roster.is_connected(tool, asked.connected.as_ref()))
        });
        let taken = route.policy.selects(&ranked, &space.index.named(&question));
        let scored: Vec<(usize, f32)> =
            ranked.iter().filter_map(|scored| Some((roster.tool_of(scored.tool)?, scored.score))).collect();
        times.embed += ranking - embedding;
        times.rank += ranking.elapsed();
        times.vectors.clone_from(&vectors);
        times.ranking = Some(scored.iter().filter_map(|(tool, _)| u32::try_from(*tool).ok()).collect());
        times.model = Some(space.model.clone());
        times.selection =
            scored.iter().take(SHOWN).map(|(tool, score)| (roster.name(*tool).to_owned(), *score)).collect();
        let named = taken.named;
        let contentless = named == 0 && question.contentless(&vectors, &space.bank);
        let best = scored.into_iter().take(taken.count).map(|(tool, _)| tool).collect();
        let head = head.map(|head| head.id().into());
        Ok(Selection { best, named, contentless, model: Some(space.model), head })
    }

    /// A reply ended with this text: what the next message will be read with is embedded meanwhile.
    pub fn foresee(&self, reply: &str) {
        let closing = passages::closing(reply);
        if !closing.is_empty() {
            self.embeddings.foresee(closing);
        }
    }

    /// Learns that these tools answered well on what the dialogue asks for.
    pub async fn learn(&self, route: &Route, roster: &Roster, dialogue: &[Utterance], payer: &[u8], tools: &[String]) {
        let may = |name: &&String| roster.named(name).first().is_some_and(|tool| roster.document_of(*tool).is_some());
        let tools: Vec<String> = tools.iter().filter(may).cloned().collect();
        let Ok(space) = self.embeddings.space(roster.documents()).await else { return };
        let question = space.index.focus(Question::of(dialogue));
        let Ok(vectors) = self.embeddings.queries(&space.model, question.texts()).await else { return };
        let ask = question.ask(&vectors, &space.bank).and_then(|ask| prior::centred(ask, &space.bank));
        if let Some(ask) = ask.filter(|_| !tools.is_empty()) {
            self.history.learn(&history::scope(&route.upstream.name, payer, &space.model), &tools, &ask).await;
        }
    }
}

/// The key of a turn's selection for all replicas: all that it depends on, and who pays.
fn turn_key(route: &Route, roster: &Roster, dialogue: &[Utterance], asked: &Asked) -> String {
    let mut words = Vec::new();
    let mut put = |part: &[u8]| {
        words.extend((part.len() as u64).to_le_bytes());
        words.extend(part);
    };
    put(route.upstream.name.as_bytes());
    put(asked.conversation.as_bytes());
    put(&roster.fingerprint().to_le_bytes());
    for connector in asked.connected.iter().flatten() {
        put(connector.as_bytes());
    }
    put(&[u8::from(asked.connected.is_some())]);
    for utterance in dialogue {
        put(utterance.text.as_bytes());
        put(utterance.reply_before.as_bytes());
    }
    history::turn_key(&words)
}

/// Names that this one request wants bound.
pub fn wishes<'w>(asked: &'w Asked, choice: &'w Choice<'_>) -> impl Iterator<Item = &'w str> {
    let chosen: &[std::borrow::Cow<'_, str>] = match choice {
        Choice::Only(names) => names,
        Choice::Auto | Choice::None | Choice::Required => &[],
    };
    asked.keep.iter().map(String::as_str).chain(chosen.iter().map(AsRef::as_ref))
}
