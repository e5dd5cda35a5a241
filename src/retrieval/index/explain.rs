//! The parts of a score, for people: which message gives a tool how much, by its vectors and by its words. NOT another
//! ranking: the parts sum up to what [`Index::rank`] ranks by.

use std::sync::Arc;

use super::{Index, hearing, moments, product, standard};
use crate::retrieval::lexical::Evidence;
use crate::retrieval::question::{Question, Role};

/// What one message of a dialogue gives every tool.
#[derive(Debug, Clone)]
pub struct Voice {
    pub role: Role,
    /// What its score is multiplied with.
    pub weight: f32,
    /// Its passages; a tool takes the best of them.
    pub readings: Vec<Reading>,
}

/// What one passage gives every tool, in units of the roster's spread.
#[derive(Debug, Clone)]
pub struct Reading {
    /// As it is embedded.
    pub text: String,
    /// Its place among the question's texts.
    pub place: usize,
    /// What it counts among the passages of its message.
    pub factor: f32,
    /// By vectors: one per document.
    pub dense: Vec<f32>,
    /// By words: one per document.
    pub words: Vec<f32>,
    /// How much of it the roster's vocabulary knows; 0 to 1.
    pub coverage: f32,
}

impl Voice {
    /// What a document has of it: the score of its best passage, and that passage.
    pub fn best(&self, document: usize) -> Option<(f32, &Reading)> {
        let score = |reading: &Reading| {
            let at = |scores: &[f32]| scores.get(document).copied().unwrap_or_default();
            reading.factor * (at(&reading.dense) + at(&reading.words))
        };
        let readings = self.readings.iter().map(|reading| (score(reading), reading));
        readings.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(score, reading)| (self.weight * score, reading))
    }
}

impl Index {
    /// What every message of the question gives every tool. `vectors` as for [`Index::rank`].
    pub fn explain(&self, question: &Question, vectors: &[Arc<[f32]>]) -> Vec<Voice> {
        let seen = question.seen(vectors);
        let voice = |(weight, message)| {
            let (role, parts) = question.parts(message);
            let reading = |(place, factor): (usize, f32)| {
                let text = question.texts().get(place)?.clone();
                let dense = match self.fitting(seen.get(place)) {
                    Some(vector) => self.dense(vector),
                    None => vec![0.0; self.documents.len()],
                };
                let Evidence { scores, coverage } = self.lexical.evidence(&text);
                let (mean, spread) = moments(&scores);
                let weight = hearing(coverage);
                let words = scores.into_iter().map(|score| weight * standard(score, mean, spread).max(0.0)).collect();
                Some(Reading { text, place, factor, dense, words, coverage })
            };
            Voice { role, weight, readings: parts.into_iter().filter_map(reading).collect() }
        };
        question.weighed(vectors, &self.bank).into_iter().map(voice).collect()
    }

    /// What the roster as a whole has of a vector, and the unit of scores: a text of a tool that has a product of `p`
    /// with the vector gives it `(p - mean / 3) / unit`.
    pub fn background(&self, vector: &[f32]) -> (f32, f32) {
        let spread = self.spread.unwrap_or_else(|| moments(&self.matrix.products(vector)).1);
        (product(&self.mean, vector), spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieval::document::Document;
    use crate::retrieval::question::Utterance;

    #[test]
    fn the_parts_sum_up_to_the_score() {
        let tool =
            |name: &str| Document { name: name.into(), description: format!("does {name}"), ..Document::default() };
        let matrix = [[3.0, 0.1, 0.0], [0.2, 3.0, 0.0], [0.0, 0.3, 2.9]].concat();
        let bank = [vec![0.6, 0.5, 0.6], vec![0.55, 0.6, 0.6]];
        let index = Index::build(vec![tool("mail"), tool("delete"), tool("weather")], matrix, &bank).expect("index");
        let says = |text: &str, reply: &str| Utterance { text: text.into(), reply_before: reply.into() };
        let long = "delete what is there ".repeat(40);
        let question =
            index.focus(Question::of(&[says("show me the weather of today", ""), says(&long, "Which one?")]));
        let vectors: Vec<Arc<[f32]>> =
            (0..question.texts().len()).map(|i| Arc::from([0.1 * i as f32, 0.5, 0.9 - 0.2 * i as f32])).collect();
        let voices = index.explain(&question, &vectors);
        assert_eq!(
            voices.iter().map(|voice| voice.role).collect::<Vec<_>>(),
            [Role::Last, Role::Closing, Role::Earlier]
        );
        for scored in index.rank(&question, &vectors) {
            let sum: f32 = voices.iter().filter_map(|voice| voice.best(scored.tool)).map(|(score, _)| score).sum();
            assert!((sum - scored.score).abs() < 1e-3, "{}: {sum} {}", scored.tool, scored.score);
        }
    }
}
