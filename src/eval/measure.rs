//! The ranking of labelled requests: read, embedded and ranked by the code that serves. NOT counting.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Problem;
use super::bar::Bar;
use super::input::{Case, Tools};
use super::sets::Loaded;
use crate::embed::{Embeddings, Space};
use crate::retrieval::head::Head;
use crate::retrieval::question::Question;
use crate::retrieval::width::Width;

/// A roster and where the tools of its cases came.
#[derive(Debug)]
pub struct Measured {
    pub name: String,
    pub tools: Tools,
    pub ranked: Vec<Ranked>,
}

/// A case and where its tools came.
#[derive(Debug, Clone)]
pub struct Ranked {
    pub case: Case,
    /// Place of each document of the roster that the case expects, from 1: name and place.
    pub places: Vec<(String, usize)>,
    /// How many were selected for it.
    pub taken: usize,
    /// The roster's documents, best first, [`SHOWN`] of them.
    pub top: Vec<usize>,
    /// What `find_tools` finds, asked with the last message alone, were none of it bound: best first, [`SHOWN`] of them.
    pub search: Vec<usize>,
}

/// Documents kept of a ranking: curves and culprits are read from them.
pub const SHOWN: usize = 40;

/// Vectors by text.
pub type Vectors = HashMap<String, Arc<[f32]>>;

/// A roster with its space and what its cases ask: ready to be ranked, any number of times.
#[derive(Debug)]
pub struct Prepared {
    pub name: String,
    pub tools: Tools,
    pub cases: Vec<Case>,
    pub questions: Vec<Question>,
    pub space: Space,
    pub vectors: Arc<Vectors>,
}

/// Embeds the rosters and everything that is asked of them.
pub async fn prepare(sets: Vec<Loaded>, embeddings: &Embeddings) -> Result<Vec<Prepared>, Problem> {
    let mut asked = Vec::with_capacity(sets.len());
    for set in sets {
        let space = building(embeddings, &set.name, &set.tools).await?;
        let questions: Vec<Question> =
            set.cases.iter().map(|case| space.index.focus(Question::of(&case.dialogue))).collect();
        asked.push((set, space, questions));
    }
    // The bank of phrases is embedded by then; without a message there is nothing more to ask.
    let Some(model) = asked.first().map(|(_, space, _)| Arc::clone(&space.model)) else { return Ok(Vec::new()) };
    let texts = asked.iter().flat_map(|(_, _, questions)| questions).flat_map(Question::texts).cloned().collect();
    let vectors = Arc::new(embedded(embeddings, &model, texts).await?);
    let prepared = asked.into_iter().map(|(set, space, questions)| Prepared {
        name: set.name,
        tools: set.tools,
        cases: set.cases,
        questions,
        space,
        vectors: Arc::clone(&vectors),
    });
    Ok(prepared.collect())
}

impl Prepared {
    /// Ranks every case, with what a head makes of its vectors, and selects as many as `k` says.
    pub fn rank(self, head: Option<&Head>, k: Width, bar: &Bar) -> Measured {
        let names: HashMap<&str, usize> =
            self.tools.documents.iter().enumerate().rev().map(|(i, d)| (d.name.as_str(), i)).collect();
        let mut ranked = Vec::with_capacity(self.cases.len());
        for (case, question) in self.cases.iter().zip(&self.questions) {
            let own = self.own(question);
            let scored = match head {
                Some(head) => self.space.index.rank(&question.clone().bent(head, &own), &own),
                None => self.space.index.rank(question, &own),
            };
            let taken = k.taken(&scored, &self.space.index.named(question)).count;
            let order: Vec<usize> = scored.into_iter().map(|scored| scored.tool).collect();
            let place = |name: &String| {
                let document = *names.get(name.as_str())?;
                Some((name.clone(), order.iter().position(|tool| *tool == document).map_or(usize::MAX, |at| at + 1)))
            };
            let places = case.expect.iter().filter_map(place).collect();
            let search = self.search(case);
            let top = order.into_iter().take(SHOWN).collect();
            ranked.push(Ranked { case: case.clone(), places, taken, top, search });
            bar.advance(1);
        }
        Measured { name: self.name, tools: self.tools, ranked }
    }

    /// A model that misses a tool asks for it in its own words; the user's are the worst it could take.
    fn search(&self, case: &Case) -> Vec<usize> {
        let Some(last) = case.dialogue.last() else { return Vec::new() };
        let question = self.space.index.focus(Question::bare(&last.text));
        self.space.index.find(&last.text, &self.own(&question), &|_| true, SHOWN).tools
    }

    /// The vectors of a question's texts.
    pub fn own(&self, question: &Question) -> Vec<Arc<[f32]>> {
        question.texts().iter().filter_map(|text| self.vectors.get(text)).cloned().collect()
    }
}

/// The roster's space, under a bar when it has to be built first.
pub async fn building(embeddings: &Embeddings, name: &str, tools: &Tools) -> Result<Space, Problem> {
    let bar = Bar::new(0, format!("embedding the {} tools of {name}", tools.documents.len()));
    let mut space = std::pin::pin!(embeddings.space(&tools.documents));
    loop {
        match tokio::time::timeout(TICK, &mut space).await {
            Ok(space) => return Ok(space?),
            Err(_) => bar.advance(0),
        }
    }
}

/// Vectors of these texts, under a bar when it takes long.
pub async fn embedded(embeddings: &Embeddings, model: &str, mut texts: Vec<String>) -> Result<Vectors, Problem> {
    texts.sort_unstable();
    texts.dedup();
    let bar = Bar::new(texts.len(), "messages");
    let mut vectors = Vectors::with_capacity(texts.len());
    for some in texts.chunks(BATCH) {
        vectors.extend(some.iter().cloned().zip(embeddings.queries(model, some).await?));
        bar.advance(some.len());
    }
    Ok(vectors)
}

/// Texts embedded at a time: a remote embedder's requests stay small, the bar moves.
const BATCH: usize = 32;

const TICK: Duration = Duration::from_millis(100);
