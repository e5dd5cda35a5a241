//! What a head can learn from: messages with the tools they needed, from labelled cases or from decision records, and
//! which of them are held out. NOT the fit, NOT a judgement.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::log::Heard;
use crate::embed::Space;
use crate::eval::measure::Prepared;
use crate::retrieval::document::Document;
use crate::retrieval::question::Question;

/// A message and the tools it needed.
#[derive(Debug, Clone)]
pub struct Example {
    pub lang: String,
    /// As it is ranked when served.
    pub question: Question,
    /// One vector per text of the question.
    pub vectors: Vec<Arc<[f32]>>,
    /// Documents of the roster.
    pub needed: Vec<usize>,
    /// Equal for messages that say the same, in whatever language.
    message: u64,
    /// Is there one vector that says it all? A nod or a paste of pages has none.
    teaches: bool,
}

/// A roster and the messages it was asked.
#[derive(Debug, Clone)]
pub struct Taught {
    pub name: String,
    pub space: Space,
    pub examples: Vec<Example>,
}

/// One in so many is held out.
const HELD_OUT: usize = 5;

impl Taught {
    /// Labelled cases; those that need none of the roster's documents are left out.
    pub fn of_cases(prepared: &Prepared) -> Self {
        let places = places(&prepared.tools.documents);
        let mut examples = Vec::with_capacity(prepared.cases.len());
        for (case, question) in prepared.cases.iter().zip(&prepared.questions) {
            let vectors = prepared.own(question);
            let said = case.dialogue.last().map_or("", |last| last.text.trim());
            let message = xxh3_64(case.pair.as_deref().unwrap_or(said).as_bytes());
            let needed = found(&places, case.expect.iter());
            let teaches = question.is_whole() && !question.contentless(&vectors, &prepared.space.bank);
            let (lang, question) = (case.lang.clone(), question.clone());
            examples.push(Example { lang, question, vectors, needed, message, teaches });
        }
        examples.retain(|example| !example.needed.is_empty());
        Self { name: prepared.name.clone(), space: prepared.space.clone(), examples }
    }

    /// Turns of decision records; `vectors`: of those that are known by their text.
    pub fn of_log(name: &str, space: &Space, heard: &[Heard], vectors: &HashMap<String, Arc<[f32]>>) -> Self {
        let places = places(space.index.documents());
        let example = |heard: &Heard| {
            let needed = found(&places, heard.called.iter());
            let question = heard.question();
            let vectors = match &heard.vector {
                Some(vector) => vec![Arc::clone(vector)],
                None => question.texts().iter().filter_map(|text| vectors.get(text)).cloned().collect(),
            };
            let fits = !needed.is_empty() && vectors.len() == question.texts().len() && !vectors.is_empty();
            let teaches = question.is_whole() && !question.contentless(&vectors, &space.bank);
            let (lang, message) = (heard.lang.clone(), xxh3_64(heard.hash.as_bytes()));
            fits.then_some(Example { lang, question, vectors, needed, message, teaches })
        };
        Self { name: name.to_owned(), space: space.clone(), examples: heard.iter().filter_map(example).collect() }
    }

    /// Examples that are learnt from when neither these messages nor these tools may be.
    pub fn lessons(&self, without: &dyn Fn(&Example) -> bool) -> super::fit::Lesson {
        let taught: Vec<&Example> =
            self.examples.iter().filter(|example| example.teaches && !without(example)).collect();
        // Only tools that some message needs: of the others nothing is known, and a fit would take that for a "never".
        let mut asked: Vec<usize> = taught.iter().flat_map(|example| &example.needed).copied().collect();
        asked.sort_unstable();
        asked.dedup();
        let mut lesson = super::fit::Lesson::default();
        for tool in &asked {
            lesson.tools.extend(self.space.index.row(*tool));
        }
        for example in taught {
            let Some(vector) = example.vectors.first() else { continue };
            lesson.queries.extend_from_slice(vector);
            lesson.needed.push(example.needed.iter().filter_map(|tool| asked.binary_search(tool).ok()).collect());
        }
        lesson
    }

    /// A fifth of the messages, of each tool: what is asked anew of tools that are known.
    pub fn held_messages(&self) -> HashSet<u64> {
        let mut of_tool: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for tool in self.examples.iter().flat_map(|example| &example.needed) {
            *counts.entry(*tool).or_default() += 1;
        }
        let mut seen = HashSet::new();
        for example in &self.examples {
            // Of its tools the one that fewest messages need.
            let rarest = example.needed.iter().min_by_key(|tool| counts.get(tool)).copied().unwrap_or_default();
            if seen.insert(example.message) {
                of_tool.entry(rarest).or_default().push(example.message);
            }
        }
        let mut held = HashSet::new();
        // Counted across tools: of five tools with one message each, one message is held out.
        let mut at = 0;
        for messages in of_tool.values_mut() {
            messages.sort_unstable();
            for message in messages {
                at += 1;
                if at % HELD_OUT == 0 {
                    held.insert(*message);
                }
            }
        }
        held
    }

    /// A fifth of the tools that messages need: what is asked of tools that no message was learnt from.
    pub fn held_tools(&self) -> HashSet<usize> {
        let mut tools: Vec<usize> = self.examples.iter().flat_map(|example| &example.needed).copied().collect();
        tools.sort_unstable();
        tools.dedup();
        let documents = self.space.index.documents();
        let hash = |tool: &usize| documents.get(*tool).map_or(0, |document| xxh3_64(document.name.as_bytes()));
        tools.sort_by_key(hash);
        tools.into_iter().skip(HELD_OUT - 1).step_by(HELD_OUT).collect()
    }
}

impl Example {
    pub fn is_of(&self, messages: &HashSet<u64>) -> bool {
        messages.contains(&self.message)
    }

    pub fn needs_one_of(&self, tools: &HashSet<usize>) -> bool {
        self.needed.iter().any(|tool| tools.contains(tool))
    }
}

fn places(documents: &[Document]) -> HashMap<&str, usize> {
    documents.iter().enumerate().rev().map(|(at, document)| (document.name.as_str(), at)).collect()
}

fn found<'a>(places: &HashMap<&str, usize>, names: impl Iterator<Item = &'a String>) -> Vec<usize> {
    let mut found: Vec<usize> = names.filter_map(|name| places.get(name.as_str())).copied().collect();
    found.sort_unstable();
    found.dedup();
    found
}
