//! Why a message gets the tools it gets: each tool's place, its score by component, what negation removed, what the
//! context added. NOT a ranking of its own: it asks the index that serves.

mod text;

use std::sync::Arc;

use serde::Serialize;

use crate::embed::Embeddings;
use crate::eval::input::Tools;
use crate::eval::{Problem, measure};
use crate::retrieval::document;
use crate::retrieval::head::Head;
use crate::retrieval::index::explain::Voice;
use crate::retrieval::negation;
use crate::retrieval::question::{Question, Role, Utterance};
use crate::retrieval::width::Width;

/// Tools whose three texts are looked at one by one: each may cost three embeddings.
const SPLIT: usize = 24;

/// Why the tools came in this order.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Identity of the embedder.
    pub model: String,
    /// Id of the head; absent: none.
    pub head: Option<String>,
    /// Tools selected.
    pub k: usize,
    pub message: String,
    /// What is left when what it rules out is removed; absent: nothing is.
    pub without_negated: Option<String>,
    /// It says nothing of its own ("yes, do it"): what it follows is the question.
    pub contentless: bool,
    /// What is read, and what it counts.
    pub heard: Vec<Heard>,
    /// Best first.
    pub tools: Vec<Explained>,
}

/// A passage that is read.
#[derive(Debug, Clone, Serialize)]
pub struct Heard {
    /// `message`, `earlier` or `reply`.
    pub role: &'static str,
    pub text: String,
    pub weight: f32,
    /// How much of it the roster's vocabulary knows; 0 to 1. Words count as much.
    pub coverage: f32,
}

/// A tool's place and score. Everything is in units of the roster's spread.
#[derive(Debug, Clone, Serialize)]
pub struct Explained {
    pub rank: usize,
    pub tool: String,
    pub score: f32,
    /// Of the message itself: by the vectors of all texts of the tool.
    pub dense: f32,
    /// The same by text; absent beyond the best of the ranking.
    pub by_text: Option<ByText>,
    /// Of the message itself: by words.
    pub words: f32,
    /// Of earlier messages and of the reply between.
    pub context: f32,
    /// All that is neither: priors, and that the message names it.
    pub other: f32,
}

/// What each text of a tool gives to `dense`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ByText {
    pub name: f32,
    pub description: f32,
    pub parameters: f32,
    /// All that is neither: keywords, and parameters that much of the roster shares.
    pub keywords: f32,
}

/// What is explained, and under which settings.
#[derive(Debug)]
pub struct Options {
    pub tools: Tools,
    /// The last utterance is what is asked.
    pub dialogue: Vec<Utterance>,
    pub k: Width,
    pub head: Option<Arc<Head>>,
}

/// Ranks the tools and takes their scores apart.
pub async fn run(options: &Options, embeddings: &Embeddings) -> Result<Explanation, Problem> {
    let Options { tools, dialogue, k, head } = options;
    let space = measure::building(embeddings, "the catalog", tools).await?;
    let index = &space.index;
    let mut question = index.focus(Question::of(dialogue));
    let vectors = embeddings.queries(&space.model, question.texts()).await?;
    if let Some(head) = head {
        head.fits(&space.model)?;
        question = question.bent(head, &vectors);
    }
    let voices = index.explain(&question, &vectors);
    let ranked = index.rank(&question, &vectors);
    let own = |voice: &&Voice| voice.role == Role::Last;
    let mut explained: Vec<Explained> = Vec::with_capacity(ranked.len());
    for (rank, scored) in (1..).zip(&ranked) {
        let Some(document) = index.documents().get(scored.tool) else { continue };
        let parts = voices.iter().find(own).and_then(|voice| Some((voice.weight, voice.best(scored.tool)?.1)));
        let (dense, words) = parts.map_or((0.0, 0.0), |(weight, reading)| {
            let at = |scores: &[f32]| weight * reading.factor * scores.get(scored.tool).copied().unwrap_or_default();
            (at(&reading.dense), at(&reading.words))
        });
        let others = voices.iter().filter(|voice| !own(voice));
        let context = others.filter_map(|voice| voice.best(scored.tool)).map(|(score, _)| score).sum::<f32>();
        let by_text = match parts.filter(|_| rank <= SPLIT) {
            Some((weight, reading)) => {
                let texts = embeddings.texts(&space.model, &document::texts(document)).await?;
                let vector = vectors.get(reading.place).cloned().unwrap_or_default();
                let vector = head.as_ref().map_or_else(|| vector.to_vec(), |head| head.apply(&vector));
                let (mean, unit) = index.background(&vector);
                let gives = |text: &Vec<f32>| {
                    let product = crate::retrieval::matrix::product(text, &vector);
                    weight * reading.factor * (product - mean / 3.0) / unit.max(f32::MIN_POSITIVE)
                };
                match texts.as_slice() {
                    [name, description, parameters] => {
                        let [name, description, parameters] = [name, description, parameters].map(gives);
                        let keywords = dense - name - description - parameters;
                        Some(ByText { name, description, parameters, keywords })
                    }
                    _ => None,
                }
            }
            None => None,
        };
        let other = scored.score - dense - words - context;
        let (tool, score) = (document.name.clone(), scored.score);
        explained.push(Explained { rank, tool, score, dense, by_text, words, context, other });
    }
    let message = dialogue.last().map_or("", |last| last.text.as_str());
    let left = negation::strip(message);
    Ok(Explanation {
        model: space.model.to_string(),
        head: head.as_ref().map(|head| head.id().to_owned()),
        k: k.taken(&ranked, &index.named(&question)).count,
        message: message.to_owned(),
        without_negated: (left != message).then(|| left.into_owned()),
        contentless: question.contentless(&vectors, &space.bank),
        heard: voices.iter().flat_map(heard).collect(),
        tools: explained,
    })
}

fn heard(voice: &Voice) -> Vec<Heard> {
    let role = match voice.role {
        Role::Last => "message",
        Role::Earlier => "earlier",
        Role::Closing => "reply",
    };
    let reading = |reading: &crate::retrieval::index::explain::Reading| Heard {
        role,
        text: reading.text.clone(),
        weight: voice.weight * reading.factor,
        coverage: reading.coverage,
    };
    voice.readings.iter().map(reading).collect()
}
