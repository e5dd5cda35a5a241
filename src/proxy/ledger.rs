//! What is worked out of a request when it is over, off its way: tokens counted, both ways simulated, the record kept
//! and given to the journal. One thread, in the order of the requests; when it has too much to do, requests are no
//! longer worked out, and that is counted. NOT the counters that need no arithmetic (`metrics`).

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::journal::Journal;
use super::sent::Sent;
use crate::cost::cache::Segment;
use crate::cost::correction::{Correction, Corrections};
use crate::cost::policy;
use crate::cost::prices::{Billed, Prices};
use crate::cost::saving::{Request, Savings, Way};
use crate::decision::Decision;
use crate::metrics::Metrics;
use crate::outcome::{Action, Outcome, Verdict};
use crate::page::today::{Day, Today};
use crate::turn::dispatch::CALL_TOOL;
use crate::turn::policy::{Binding, Policy};
use crate::turn::roster::Roster;
use crate::turn::{search, tokens};
use crate::wire::reply::Usage;
use crate::wire::request::{Place, Slot};
use crate::wire::view::ChatView;

/// Decision records that `/decisions` shows.
const DECISIONS: usize = 200;
/// Requests that wait to be worked out.
const WAITING: usize = 1024;
/// Between two looks at what waits.
const REST: Duration = Duration::from_millis(5);
/// Bytes of bodies that wait to be counted.
const BODIES: usize = 32 << 20;
/// Bytes of a text that is counted; what is longer is guessed by its length: it is no message that somebody wrote.
const LONGEST: usize = 512 << 10;
/// Texts whose tokens are remembered, half a megabyte: what a roster and a conversation repeat.
const TEXTS: usize = 1 << 14;

/// A request's texts, to be counted.
pub struct Measure {
    pub sent: Sent,
    pub roster: Arc<Roster>,
    /// Are its tools to be counted, too? Else they are already.
    pub tools: bool,
    pub find_tools_name: String,
    /// System prompt and messages.
    pub history: Vec<Range<usize>>,
    pub counted: Arc<OnceLock<Vec<Segment>>>,
}

impl Measure {
    /// What must be counted of a request. `view`: of it.
    pub fn of(
        sent: &Sent,
        view: &ChatView<'_>,
        roster: &Arc<Roster>,
        policy: &Policy,
        counted: Arc<OnceLock<Vec<Segment>>>,
    ) -> Self {
        // The system prompts are borrowed from the body, so their places are known.
        let place = |system: &&str| {
            let start = (system.as_ptr() as usize).saturating_sub(sent.text().as_ptr() as usize);
            start..start + system.len()
        };
        // OpenAI's stand among the messages, too.
        let among = |place: &Range<usize>| view.layout.messages.contains(&place.start);
        let system = view.system.iter().map(place).filter(|place| !among(place));
        let messages = view.messages.iter().map(|message| message.span.clone());
        let claimed = !view.tools.is_empty() && roster.sizes().claim();
        Self {
            sent: sent.clone(),
            roster: roster.clone(),
            tools: claimed,
            find_tools_name: policy.find_tools_name.clone(),
            history: system.chain(messages).collect(),
            counted,
        }
    }
}

enum Entry {
    Measure(Box<Measure>),
    Outcome(Box<Outcome>),
}

/// Where requests go that are over. Dropping it works out what waits.
pub struct Ledger {
    entries: Option<SyncSender<Entry>>,
    clerk: Option<JoinHandle<()>>,
    /// Bytes of bodies that wait, and entries.
    bodies: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
    lost: AtomicU64,
    book: Arc<Mutex<Book>>,
    journal: Option<Arc<Journal>>,
}

/// What can be looked up.
#[derive(Default)]
struct Book {
    decisions: VecDeque<Decision>,
    today: Today,
    corrections: Corrections,
}

impl Ledger {
    pub fn open(prices: Prices, metrics: Arc<Metrics>, journal: Option<Journal>) -> std::io::Result<Self> {
        let (entries, waiting) = sync_channel(WAITING);
        let left = Arc::new(AtomicUsize::new(0));
        let (bodies, book) = (Arc::new(AtomicUsize::new(0)), Arc::<Mutex<Book>>::default());
        let journal = journal.map(Arc::new);
        let mut clerk = Clerk {
            texts: HashMap::new(),
            savings: Savings::default(),
            prices,
            metrics,
            journal: journal.clone(),
            book: book.clone(),
            bodies: bodies.clone(),
            left: left.clone(),
        };
        let clerk =
            std::thread::Builder::new().name("packlight-ledger".to_owned()).spawn(move || clerk.work(&waiting))?;
        Ok(Self {
            entries: Some(entries),
            clerk: Some(clerk),
            bodies,
            waiting: left,
            lost: AtomicU64::new(0),
            book,
            journal,
        })
    }

    /// Has a request's texts counted, if there is room for its body. Never waits.
    pub fn measure(&self, measure: Measure) {
        let bytes = measure.sent.len();
        let roster = measure.tools.then(|| measure.roster.clone());
        let full = self.bodies.fetch_add(bytes, Ordering::Relaxed) + bytes > BODIES;
        if full || !self.enter(Entry::Measure(Box::new(measure))) {
            self.bodies.fetch_sub(bytes, Ordering::Relaxed);
            if let Some(roster) = roster {
                roster.sizes().unclaim();
            }
        }
    }

    /// Takes a request that is over; never waits.
    pub fn record(&self, outcome: Outcome) {
        if !self.enter(Entry::Outcome(Box::new(outcome))) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Requests that wait to be worked out.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Records that were lost so far, here or at the disk.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed) + self.journal.as_ref().map_or(0, |journal| journal.dropped())
    }

    /// The last records, oldest first.
    pub fn decisions(&self) -> Vec<Decision> {
        self.book().decisions.iter().cloned().collect()
    }

    /// What an upstream's requests of today come to.
    pub fn today(&self, upstream: &str, now: f64) -> Day {
        self.book().today.of(upstream, now)
    }

    /// Reported tokens for estimated ones, by model.
    pub fn corrections(&self) -> Vec<(String, Correction)> {
        self.book().corrections.known()
    }

    fn enter(&self, entry: Entry) -> bool {
        let Some(entries) = &self.entries else { return false };
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let refused = matches!(entries.try_send(entry), Err(TrySendError::Full(_) | TrySendError::Disconnected(_)));
        if refused {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        !refused
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        opened(&self.book)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        drop(self.entries.take());
        if let Some(clerk) = self.clerk.take() {
            let _ = clerk.join();
        }
    }
}

/// Who works it out.
struct Clerk {
    /// Tokens of texts by their hash.
    texts: HashMap<u64, u64>,
    savings: Savings,
    prices: Prices,
    metrics: Arc<Metrics>,
    journal: Option<Arc<Journal>>,
    book: Arc<Mutex<Book>>,
    bodies: Arc<AtomicUsize>,
    left: Arc<AtomicUsize>,
}

impl Clerk {
    fn work(&mut self, waiting: &Receiver<Entry>) {
        while let Ok(entry) = waiting.recv() {
            self.take(entry);
            waiting.try_iter().for_each(|entry| self.take(entry));
            // Who waits has to be woken, by the thread that serves: so once in a while, not twice a request.
            std::thread::sleep(REST);
        }
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Measure(measure) => {
                self.measure(&measure);
                self.bodies.fetch_sub(measure.sent.len(), Ordering::Relaxed);
            }
            Entry::Outcome(outcome) => self.record(*outcome),
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
    }

    fn measure(&mut self, measure: &Measure) {
        let body = measure.sent.text();
        if let Some(view) = measure.tools.then(|| measure.sent.view().ok()).flatten() {
            let texts = &mut self.texts;
            let count = |hash, text: &str| counted(texts, hash, text);
            let find_tools = search::written(&measure.find_tools_name, measure.roster.directory());
            measure.roster.sizes().count(view.tools.iter().map(|tool| &*tool.text), &find_tools, count);
        }
        let history = measure.history.iter().map(|span| {
            let text = body.get(span.clone()).unwrap_or_default();
            let hash = xxh3_64(text.as_bytes());
            Segment { hash, tokens: counted(&mut self.texts, hash, text) }
        });
        // Nobody else counts it.
        let _ = measure.counted.set(history.collect());
    }

    fn record(&mut self, mut outcome: Outcome) {
        outcome.measure();
        let factor = self.learn(&outcome);
        outcome.saved_usd = self.saved(&outcome, factor);
        self.metrics.estimated(&outcome);
        let decision = outcome.decision();
        if let Some(journal) = &self.journal {
            journal.record(decision.clone(), outcome.tools.take());
        }
        let mut book = self.book();
        book.today.add(&decision);
        if book.decisions.len() == DECISIONS {
            book.decisions.pop_front();
        }
        book.decisions.push_back(decision);
    }

    /// Learns what the provider makes of a prompt that was sent in full. Returns the model's factor.
    fn learn(&self, outcome: &Outcome) -> f64 {
        let whole = matches!(outcome.action, Action::Full | Action::Shadow | Action::Holdout) && outcome.legs == 1;
        let mut book = self.book();
        if let Some(history) = outcome.history.get().filter(|_| whole && outcome.usage.reported) {
            let history: u64 = history.iter().map(|part| part.tokens).sum();
            book.corrections.learn(&outcome.model, outcome.usage.prompt, history + outcome.roster_tokens);
            if let Some(correction) = book.corrections.of(&outcome.model) {
                self.metrics.corrected(&outcome.model, &correction);
            }
        }
        book.corrections.factor(&outcome.model)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        opened(&self.book)
    }

    /// What narrowing saved, or in shadow would have; `None` where there is nothing to compare.
    fn saved(&mut self, outcome: &Outcome, factor: f64) -> Option<f64> {
        let (roster, history) = (outcome.tools.as_ref()?, outcome.history.get()?);
        let block = outcome.block.as_ref().filter(|_| outcome.chose() && outcome.status == 200)?;
        let segment = |tool| Segment { hash: roster.sizes().content(tool), tokens: roster.sizes().tokens(tool) };
        let full: Vec<Segment> = match &outcome.fitting {
            Some(fitting) => fitting.iter().copied().map(segment).collect(),
            None => (0..roster.len()).map(segment).collect(),
        };
        let narrow = block.slots().into_iter().filter_map(|slot| match slot {
            Slot::Roster(tool) => Some(segment(tool)),
            Slot::FindTools => {
                let (hash, tokens) = roster.sizes().find_tools();
                outcome.searchable.then_some(Segment { hash, tokens })
            }
        });
        let dispatched = outcome.binding == Binding::Dispatch.label();
        let call_tool = Segment { hash: xxh3_64(CALL_TOOL.as_bytes()), tokens: policy::CALL_TOOL };
        let narrow: Vec<Segment> = narrow.chain(dispatched.then_some(call_tool)).collect();
        let declared = block.declared().iter().flat_map(|declaration| {
            let at = match declaration.place {
                Place::Behind(message) => message + 1,
                Place::Before(message) => message,
                // Hidden exchanges are no part of what the agent wrote.
                Place::Restored { .. } | Place::Appended(_) => usize::MAX / 2,
            };
            declaration.tools.iter().map(move |tool| (outcome.system_parts + at, *tool))
        });
        let declared: Vec<(usize, Segment)> = declared.map(|(at, tool)| (at, segment(tool))).collect();
        let added = |name: &String| roster.named(name).first().copied().map(segment);
        let found: Vec<Segment> = match outcome.action {
            Action::Narrowed => outcome.found.iter().filter_map(added).collect(),
            _ => {
                let missed = outcome.called.iter().filter(|call| call.verdict == Verdict::Withheld);
                missed.filter_map(|call| added(&call.name)).collect()
            }
        };
        let billed = |usage: Usage| {
            usage.reported.then_some(Billed {
                prompt: usage.prompt,
                cached: usage.cached,
                completion: usage.completion,
            })
        };
        Some(self.savings.saved(&Request {
            model: &outcome.model,
            price: self.prices.find(&outcome.model)?,
            rules: self.prices.cache(&outcome.model),
            account: outcome.account,
            now: Duration::try_from_secs_f64(outcome.ts).unwrap_or_default(),
            full: &full,
            narrow: &narrow,
            history,
            declared: &declared,
            sent: if outcome.action == Action::Narrowed { Way::Narrow } else { Way::Full },
            first: outcome.first.and_then(billed),
            all: billed(outcome.usage),
            legs: outcome.legs as u64,
            last_completion: outcome.last.completion,
            found: &found,
            found_last: dispatched || outcome.binding == Binding::Append.label(),
            factor,
        }))
    }
}

/// Sums stay sums, whoever panicked beside them.
fn opened(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tokens of a text, counted once while it is remembered.
fn counted(texts: &mut HashMap<u64, u64>, hash: u64, text: &str) -> u64 {
    if texts.len() >= TEXTS && !texts.contains_key(&hash) {
        texts.clear();
    }
    *texts.entry(hash).or_insert_with(|| if text.len() > LONGEST { tokens::quick(text) } else { tokens::count(text) })
}
