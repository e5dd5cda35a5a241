//! Learning from one's own requests: a small matrix that turns a message's vector towards the tools such messages
//! needed. Fitted on four fifths, judged on the rest, and given out only if the rest gains. NOT how a head is applied
//! (`retrieval/head.rs`), NOT where its file is loaded (the proxy).

pub mod examples;
pub mod fit;
pub mod judge;
pub mod log;
mod minimise;
pub mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use self::examples::{Example, Taught};
use self::judge::{ByLang, Judged};
pub use self::report::Report;
use crate::embed::Embeddings;
use crate::eval::bar::Bar;
use crate::eval::sets::Set;
use crate::eval::{self, measure};
use crate::retrieval::head::Head;
use crate::retrieval::width::Width;

/// What is learnt from.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Labelled requests, and how many tools are selected for each.
    pub eval: eval::Options,
    /// Decision records, asked of the roster of `log_set`.
    pub logs: Vec<PathBuf>,
    /// The roster of `logs`: only its catalog and overlay count.
    pub log_set: Set,
    /// Names of sets that are not learnt from, only measured.
    pub leave_out: Vec<String>,
}

/// Why nothing was learnt.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("cannot read {path}: {error}")]
    Read { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Eval(#[from] eval::Problem),
    #[error(transparent)]
    Embed(#[from] crate::retrieval::embedder::EmbedError),
    #[error("there is no set named {0} to leave out")]
    NoSuchSet(String),
    #[error(
        "{found} labelled messages are too few to learn from and to judge by: at least {LEAST} are needed (a record \
         counts when its model called a tool of the catalog and it holds the message's vector or text: a log without them \
         is recorded anew, with `log.vectors = true` or `log.text = true`)"
    )]
    TooFew { found: usize },
    #[error("the log's vectors are of {log}, and the embedder is {embedder}")]
    OtherEmbedder { log: String, embedder: String },
    #[error("the fit did not come to numbers")]
    NotFinite,
}

/// What was learnt, and whether it is worth using.
#[derive(Debug)]
pub struct Learnt {
    pub report: Report,
    /// Fitted to everything that is not left out.
    pub head: Head,
}

/// Fewer messages cannot tell a gain from luck.
const LEAST: usize = 40;

/// Fits three times: without a fifth of the messages, without a fifth of the tools, and, on from the first, to all.
pub async fn run(options: &Options, embeddings: &Embeddings) -> Result<Learnt, Problem> {
    let taught = taught(options, embeddings).await?;
    if let Some(name) = options.leave_out.iter().find(|name| !taught.iter().any(|set| set.name == **name)) {
        return Err(Problem::NoSuchSet(name.clone()));
    }
    let (left_out, learnt): (Vec<Taught>, Vec<Taught>) =
        taught.into_iter().partition(|set| options.leave_out.contains(&set.name));
    learn(&learnt, &left_out, options.eval.k)
}

/// The same of messages that are embedded already.
pub fn learn(sets: &[Taught], left_out: &[Taught], k: Width) -> Result<Learnt, Problem> {
    let found = sets.iter().map(|set| set.examples.len()).sum();
    let Some(space) = sets.first().map(|set| &set.space).filter(|_| found >= LEAST) else {
        return Err(Problem::TooFew { found });
    };
    let begun = Instant::now();
    let bar = Bar::new(2 * fit::steps(false) + fit::steps(true), "fitting");
    let mean = mean(&space.bank, sets);
    let fitted = |without: &dyn Fn(usize, &Example) -> bool, from: Option<&[f32]>, what: &str| {
        bar.say(format!("steps, fitting {what}"));
        let lessons: Vec<fit::Lesson> =
            sets.iter().enumerate().map(|(at, set)| set.lessons(&|example| without(at, example))).collect();
        let mut done = 0;
        let matrix = fit::fit(&lessons, &mean, from, &mut |step| {
            done = step;
            bar.advance(1);
        });
        bar.advance(fit::steps(from.is_some()) - done);
        let head = Head::new(&space.model, mean.clone(), &matrix).ok_or(Problem::NotFinite)?;
        Ok::<_, Problem>((head, matrix))
    };

    let mut judged: Vec<Judged> = Vec::new();
    let held: Vec<_> = sets.iter().map(Taught::held_messages).collect();
    let is_held = |set: usize, example: &Example| held.get(set).is_some_and(|held| example.is_of(held));
    let (head, most) = fitted(&is_held, None, "without a fifth of the messages")?;
    judged.extend(parts(sets, &head, k, &is_held, "new messages"));

    let held: Vec<_> = sets.iter().map(Taught::held_tools).collect();
    let is_held = |set: usize, example: &Example| held.get(set).is_some_and(|held| example.needs_one_of(held));
    let (head, _) = fitted(&is_held, None, "without a fifth of the tools")?;
    judged.extend(parts(sets, &head, k, &is_held, "new tools"));

    let (head, _) = fitted(&|_, _| false, Some(&most), "all")?;
    for set in left_out {
        judged.extend(parts(std::slice::from_ref(set), &head, k, &|_, _| true, &format!("left out: {}", set.name)));
    }
    let report = Report {
        model: space.model.to_string(),
        k,
        learnt_from: found,
        seconds: begun.elapsed().as_secs_f64(),
        judged,
    };
    Ok(Learnt { report, head })
}

/// By language over all sets; of several sets each as well.
fn parts(sets: &[Taught], head: &Head, k: Width, wanted: &dyn Fn(usize, &Example) -> bool, part: &str) -> Vec<Judged> {
    let mut all = ByLang::new();
    let mut judged = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let mut own = ByLang::new();
        judge::hits(set, head, k, &|example| wanted(at, example), &mut own);
        if sets.len() > 1 {
            judged.extend(judge::judged(&format!("{part}, {}", set.name), &own).pop());
        }
        for (lang, hits) in own {
            all.entry(lang).or_default().extend(hits);
        }
    }
    judged.extend(judge::judged(part, &all));
    judged
}

async fn taught(options: &Options, embeddings: &Embeddings) -> Result<Vec<Taught>, Problem> {
    let mut taught = Vec::new();
    if !options.eval.sets.is_empty() {
        let (prepared, _) = eval::prepared(&options.eval, embeddings).await?;
        taught.extend(prepared.iter().map(Taught::of_cases));
    }
    if !options.logs.is_empty() {
        let heard = log::read(&options.logs)?;
        // Before the roster is embedded, which may take minutes: what is not in the log will not be learnt.
        if options.eval.sets.is_empty() && heard.len() < LEAST {
            return Err(Problem::TooFew { found: heard.len() });
        }
        let tools = options.log_set.roster(options.eval.overlay.as_ref())?;
        let space = measure::building(embeddings, "the log", &tools).await?;
        if let Some(other) = heard.iter().find(|turn| turn.vector.is_some() && turn.embedder != *space.model) {
            return Err(Problem::OtherEmbedder { log: other.embedder.clone(), embedder: space.model.to_string() });
        }
        let known = heard.iter().filter(|turn| turn.vector.is_none());
        let texts = known.flat_map(|turn| turn.question().texts().to_vec()).collect();
        let vectors = measure::embedded(embeddings, &space.model, texts).await?;
        taught.push(Taught::of_log("log", &space, &heard, &vectors));
    }
    Ok(taught)
}

/// What messages differ from: the mean of the phrases without content, the same for every roster; without such a bank
/// the mean of what is learnt from.
fn mean(bank: &[Vec<f32>], sets: &[Taught]) -> Vec<f32> {
    let examples = || sets.iter().flat_map(|set| &set.examples).filter_map(|example| example.vectors.first());
    let rows: Vec<&[f32]> =
        if bank.is_empty() { examples().map(Arc::as_ref).collect() } else { bank.iter().map(Vec::as_slice).collect() };
    let mut mean = vec![0.0; rows.first().map_or(0, |row| row.len())];
    for row in &rows {
        mean.iter_mut().zip(*row).for_each(|(sum, number)| *sum += number / rows.len() as f32);
    }
    mean
}
