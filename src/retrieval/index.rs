//! A roster ready to be asked: one packed f32 matrix and its lexical counts.
//! NOT what is bound, NOT a floor: every tool gets a place, none is refused.
//!
//! A tool's score is the sum of two voices in comparable units. Vectors: how far its product with the text stands above
//! the roster's mean, in units of the spread that texts without content cause over this roster. Words: the z-score of
//! the lexical evidence where it is above the mean, weighed by how much of the text the roster's vocabulary knows.

pub mod explain;

use std::sync::Arc;

use super::document::{self, Document};
use super::lexical::{Evidence, Lexical};
use super::matrix::{Matrix, Parts, finite, moments, product};
use super::names::Names;
use super::question::{Message, Question};

/// A roster ready to be asked. Shape of the matrix: documents x dimensions, row-major f32.
#[derive(Debug)]
pub struct Index {
    documents: Vec<Document>,
    matrix: Matrix,
    /// The matrix's mean row.
    mean: Vec<f32>,
    /// Standard deviation over the tools that texts without content cause; `None` without a bank.
    spread: Option<f32>,
    lexical: Lexical,
    bank: Vec<Vec<f32>>,
    names: Names,
}

/// A tool and how well it fits; the unit is the roster's own spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Index of the document.
    pub tool: usize,
    pub score: f32,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Best first.
    pub tools: Vec<usize>,
    /// False: say plainly that there is no such tool; `tools` are then only the nearest.
    pub matched: bool,
}

impl Index {
    /// `matrix`: documents x dimensions, each row as [`Self::of_parts`] makes it. `bank`: vectors of
    /// [`super::question::contentless_phrases`], same embedder; empty: each text's own spread is the unit.
    /// `None` when the lengths do not fit or a number is not finite.
    pub fn build(documents: Vec<Document>, matrix: Vec<f32>, bank: &[Vec<f32>]) -> Option<Self> {
        let matrix = Matrix::new(matrix, documents.len())?;
        if !documents.is_empty() && bank.iter().any(|phrase| phrase.len() != matrix.dimensions() || !finite(phrase)) {
            return None;
        }
        let spreads: Vec<f32> = bank.iter().map(|phrase| moments(&matrix.products(phrase)).1).collect();
        let spread = Some(moments(&spreads).0).filter(|spread| *spread > LEAST_SPREAD);
        Some(Self {
            mean: matrix.mean(),
            spread,
            lexical: Lexical::build(&documents),
            bank: bank.to_vec(),
            names: Names::new(documents.iter().map(|document| document.name.as_str())),
            matrix,
            documents,
        })
    }

    /// The index of a roster whose tools have two rows each, the sums of the unit vectors of what they are called and do,
    /// and of all they say; behind them a row for the keywords of each tool that has [`document::runs`], of unit length.
    /// Shape of `parts`: (2 documents + those with keywords) x dimensions. Otherwise as [`Self::build`].
    pub fn of_parts(documents: Vec<Document>, parts: &[f32], bank: &[Vec<f32>]) -> Option<Self> {
        let owned = document::owned(&documents);
        let worded: Vec<bool> = documents.iter().map(|document| !document::runs(document).is_empty()).collect();
        let rows = Parts { numbers: parts, owned: &owned, worded: &worded, voice: KEYWORDS }.combined()?;
        Self::build(documents, rows, bank)
    }

    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Bytes in memory, roughly.
    pub fn weight(&self) -> usize {
        let row = self.matrix.dimensions() * size_of::<f32>();
        self.documents.iter().map(|document| row + document.weight()).sum::<usize>() + self.lexical.weight()
    }

    /// A document's row of the matrix; empty when there is none.
    pub fn row(&self, document: usize) -> &[f32] {
        self.matrix.row(document)
    }

    /// Reads, of a long message, the passages that promise most for this roster. Call it before embedding.
    pub fn focus(&self, question: Question) -> Question {
        question.focused(&|text| {
            let evidence = self.lexical.evidence(text);
            let (mean, spread) = moments(&evidence.scores);
            let peak = evidence.scores.iter().copied().fold(0.0, f32::max);
            evidence.coverage * standard(peak, mean, spread)
        })
    }

    /// All tools, best first; equals in the order of the roster; those that the last message names come first whatever
    /// their score. `vectors`: one per [`Question::texts`]; one that is missing or of another length says nothing.
    pub fn rank(&self, question: &Question, vectors: &[Arc<[f32]>]) -> Vec<Scored> {
        self.rank_with(question, vectors, &[])
    }

    /// [`Self::rank`] with what the [`super::prior`]s add to each document's score; those beyond its end add nothing.
    pub fn rank_with(&self, question: &Question, vectors: &[Arc<[f32]>], priors: &[f32]) -> Vec<Scored> {
        let mut scores = self.scores(question, vectors);
        add(&mut scores, priors, 1.0);
        let mut ranked: Vec<Scored> =
            scores.into_iter().enumerate().map(|(tool, score)| Scored { tool, score }).collect();
        let order = |a: &Scored, b: &Scored| b.score.total_cmp(&a.score).then(a.tool.cmp(&b.tool));
        ranked.sort_unstable_by(order);
        let named = self.named(question);
        if !named.is_empty() {
            let top = ranked.first().map_or(0.0, |best| best.score);
            ranked.sort_by_key(|scored| named.binary_search(&scored.tool).is_err());
            ranked.iter_mut().take(named.len()).for_each(|scored| scored.score = top);
        }
        ranked
    }

    /// Documents that the last message names, in roster order: they are bound whatever their score.
    pub fn named(&self, question: &Question) -> Vec<usize> {
        self.names.in_message(&question.last_text())
    }

    /// What a `find_tools` query finds: an exact or near-exact name first, then by rank; `hidden[i]`: tool i may be
    /// offered. `vectors`: one per text of [`Question::bare`]. `matched` false: nothing is better than the roster's own background.
    pub fn find(&self, query: &str, vectors: &[Arc<[f32]>], hidden: &dyn Fn(usize) -> bool, most: usize) -> Found {
        let question = self.focus(Question::bare(query));
        let mut tools = self.names.in_search(query);
        tools.retain(|tool| hidden(*tool));
        let matched = !tools.is_empty() || self.stands_out(query, &question, vectors, hidden);
        for Scored { tool, .. } in self.rank(&question, vectors) {
            if hidden(tool) && !tools.contains(&tool) {
                tools.push(tool);
            }
            if tools.len() >= most {
                break;
            }
        }
        tools.truncate(most);
        Found { tools, matched }
    }

    fn scores(&self, question: &Question, vectors: &[Arc<[f32]>]) -> Vec<f32> {
        let seen = question.seen(vectors);
        let mut scores = vec![0.0; self.documents.len()];
        // Products are linear: messages of one passage share one reading of the matrix.
        let mut sum = vec![0.0; self.matrix.dimensions()];
        for (weight, message) in question.weighed(vectors, &self.bank) {
            match (message.parts.as_slice(), self.spread) {
                ([part], Some(_)) => {
                    if let Some(vector) = self.fitting(seen.get(part.text)) {
                        add(&mut sum, vector, weight * part.factor);
                    }
                    self.add_words(question, part.text, weight * part.factor, &mut scores);
                }
                _ => add(&mut scores, &self.best_passage(question, message, seen), weight),
            }
        }
        if self.spread.is_some() {
            add(&mut scores, &self.dense(&sum), 1.0);
        }
        scores
    }

    /// A tool takes its best passage, never the mean of them.
    fn best_passage(&self, question: &Question, message: &Message, vectors: &[Arc<[f32]>]) -> Vec<f32> {
        let mut best = vec![f32::NEG_INFINITY; self.documents.len()];
        for part in &message.parts {
            let mut scores = match self.fitting(vectors.get(part.text)) {
                Some(vector) => self.dense(vector),
                None => vec![0.0; self.documents.len()],
            };
            self.add_words(question, part.text, 1.0, &mut scores);
            for (best, score) in best.iter_mut().zip(scores) {
                *best = best.max(score * part.factor);
            }
        }
        best
    }

    /// Products with the text's vector, above their mean, in units of the spread.
    fn dense(&self, vector: &[f32]) -> Vec<f32> {
        let mut products = self.matrix.products(vector);
        let mean = product(&self.mean, vector);
        let spread = self.spread.unwrap_or_else(|| moments(&products).1);
        for score in &mut products {
            *score = standard(*score, mean, spread);
        }
        products
    }

    fn add_words(&self, question: &Question, text: usize, weight: f32, scores: &mut [f32]) {
        let Some(text) = question.texts().get(text) else { return };
        let Evidence { scores: found, coverage } = self.lexical.evidence(text);
        let weight = weight * hearing(coverage);
        if weight == 0.0 {
            return;
        }
        let (mean, spread) = moments(&found);
        for (score, found) in scores.iter_mut().zip(found) {
            *score += weight * standard(found, mean, spread).max(0.0);
        }
    }

    fn fitting<'a>(&self, vector: Option<&'a Arc<[f32]>>) -> Option<&'a [f32]> {
        vector.map(AsRef::as_ref).filter(|vector: &&[f32]| vector.len() == self.matrix.dimensions() && finite(vector))
    }

    /// Is any tool that may be offered better than the roster's background?
    fn stands_out(
        &self,
        query: &str,
        question: &Question,
        vectors: &[Arc<[f32]>],
        hidden: &dyn Fn(usize) -> bool,
    ) -> bool {
        let peak = |scores: Vec<f32>| {
            let offered = scores.into_iter().enumerate().filter(|(tool, _)| hidden(*tool));
            offered.map(|(_, score)| score).fold(f32::NEG_INFINITY, f32::max)
        };
        vectors
            .iter()
            .take(question.texts().len())
            .filter_map(|v| self.fitting(Some(v)))
            .any(|v| peak(self.dense(v)) >= STANDS_OUT)
            || peak(self.lexical.evidence(query).scores) >= SHARES_WORDS
    }
}

/// Weight of the words' voice in a text of which the roster knows so much. Words speak for a tool, never against one: a
/// tool that shares no word with the message is no worse a match by that. All needed tools within the top 12 of the
/// whole development sets (9,779 cases; macro over metatool, acebench single and dialogue in English,
/// bfcl-multi-turn, tooltalk, ha-intents and xsid-valid, each of these in English and in the others):
///
/// | weight, c = coverage | macro | metatool | bfcl | xsid en | worst language, pooled, against no words |
/// |---|---|---|---|---|---|
/// | no words | 83.9 | 77.2 | 78.4 | 98.3 | |
/// | .75 c z, both signs (the recipe) | 86.1 | 82.0 | 82.5 | 96.2 | zh -.43 |
/// | .75 c z, z > 0 | 86.3 | 81.6 | 82.7 | 97.4 | pl -.34 |
/// | **.9 c z, z > 0** | 86.3 | 82.0 | 82.9 | 97.4 | pl -.34 |
/// | 1.0 c z, z > 0 | 86.3 | 82.3 | 83.0 | 97.4 | pl -.34 |
/// | min(.75 c, 1.7 (c - .3)) z, z > 0 | 85.9 | 81.4 | 79.8 | 97.9 | none |
///
/// On metatool, ha-intents and xsid-valid alone also: z clipped at 2 to 5, its root or logarithm, c squared or cubed,
/// fractions of the ideal instead of z, the top of the vectors kept in: none better within the top 12 than these.
fn hearing(coverage: f32) -> f32 {
    LEXICAL * coverage
}

/// .5 to 1 are flat.
const LEXICAL: f32 = 0.9;

/// Weight of the keywords' voice: see [`document`].
const KEYWORDS: f32 = 1.5;

/// A tool whose vectors stand so many units above the mean is an answer. With [`SHARES_WORDS`]: of searches that had an
/// answer 1.8 % are told there is none, of those without 8 % are. Nothing measured separates them better, so it never
/// gates a selection.
const STANDS_OUT: f32 = 2.5;

/// Lexical evidence that makes a tool an answer, whatever its vectors.
const SHARES_WORDS: f32 = 0.03;

/// A smaller spread than this is a roster of equal texts: dividing by it would only enlarge rounding.
const LEAST_SPREAD: f32 = 1e-6;

fn standard(value: f32, mean: f32, spread: f32) -> f32 {
    if spread > LEAST_SPREAD { (value - mean) / spread } else { 0.0 }
}

fn add(sum: &mut [f32], numbers: &[f32], weight: f32) {
    for (sum, number) in sum.iter_mut().zip(numbers) {
        *sum += weight * number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieval::question::Utterance;

    fn tool(name: &str, description: &str) -> Document {
        Document { name: name.into(), description: description.into(), ..Document::default() }
    }

    fn vector(numbers: [f32; 3]) -> Arc<[f32]> {
        Arc::from(numbers)
    }

    /// Three tools along three axes; phrases without content cause a spread of about 0.1.
    fn index() -> Index {
        let documents = vec![
            tool("send_mail", "Send an e-mail"),
            tool("delete_record", "Remove a record"),
            tool("get_weather", "Forecast of a place"),
        ];
        let matrix = [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]].concat();
        Index::build(documents, matrix, &[vec![0.6, 0.5, 0.6], vec![0.55, 0.6, 0.6]]).expect("index")
    }

    fn order(index: &Index, question: &Question, vectors: &[Arc<[f32]>]) -> Vec<usize> {
        index.rank(question, vectors).iter().map(|scored| scored.tool).collect()
    }

    fn says(text: &str, reply_before: &str) -> Utterance {
        Utterance { text: text.into(), reply_before: reply_before.into() }
    }

    #[test]
    fn every_tool_has_a_place_and_equals_keep_the_roster_order() {
        let index = index();
        let question = Question::bare("كيف الطقس");
        assert_eq!(order(&index, &question, &[vector([0.0, 0.1, 0.9])]), [2, 1, 0]);
        assert_eq!(order(&index, &question, &[vector([0.5, 0.5, 0.5])]), [0, 1, 2]);
    }

    #[test]
    fn words_speak_where_vectors_are_silent() {
        let question = Question::bare("delete the record");
        assert_eq!(order(&index(), &question, &[vector([0.5, 0.5, 0.5])]).first(), Some(&1));
        for wrong in [vec![], vec![Arc::from([1.0f32])], vec![vector([f32::NAN, 0.0, 0.0])]] {
            assert_eq!(order(&index(), &question, &wrong).first(), Some(&1));
        }
    }

    #[test]
    fn without_a_bank_each_text_has_its_own_spread() {
        let matrix = [[3.0, 0.0], [0.0, 3.0]].concat();
        let index = Index::build(vec![tool("a", ""), tool("b", "")], matrix, &[]).expect("index");
        let ranked = index.rank(&Question::bare("كيف"), &[Arc::from([0.2f32, 0.4])]);
        assert_eq!(ranked, [Scored { tool: 1, score: 1.0 }, Scored { tool: 0, score: -1.0 }]);
    }

    #[test]
    fn a_nod_takes_the_ask_before_it() {
        let index = index();
        let question = Question::of(&[says("كيف الطقس", ""), says("نعم", "هل أبحث؟")]);
        assert_eq!(question.texts(), ["نعم", "كيف الطقس", "هل أبحث؟"]);
        let vectors = [vector([0.9, 0.1, 0.1]), vector([0.1, 0.1, 0.9]), vector([0.4, 0.5, 0.5])];
        assert_eq!(order(&index, &question, &vectors).first(), Some(&2));
    }

    #[test]
    fn a_tool_takes_its_best_passage() {
        let index = index();
        let paste = "qwx zrt ".repeat(60);
        let question = index.focus(Question::bare(&format!("{paste}\n\nдай погоду")));
        let mut vectors = vec![vector([0.5, 0.5, 0.5]); question.texts().len()];
        vectors[1] = vector([0.0, 0.1, 0.9]);
        assert_eq!(question.texts()[1], "дай погоду");
        assert_eq!(order(&index, &question, &vectors).first(), Some(&2));
    }

    #[test]
    fn rubbish_makes_no_index() {
        let two = || vec![tool("a", ""), tool("b", "")];
        assert!(Index::build(two(), vec![1.0; 3], &[]).is_none());
        assert!(Index::build(two(), vec![1.0, f32::NAN], &[]).is_none());
        assert!(Index::build(two(), vec![1.0; 4], &[vec![1.0; 3]]).is_none());
        assert!(Index::build(two(), vec![1.0; 4], &[vec![1.0, f32::INFINITY]]).is_none());
        let none = Index::build(Vec::new(), Vec::new(), &[vec![1.0]]).expect("no tools");
        assert_eq!(none.rank(&Question::bare("x"), &[]), []);
        assert!(Index::build(two(), vec![0.0; 4], &[vec![1.0; 2]]).is_some_and(|index| index.spread.is_none()));
    }

    #[test]
    fn a_name_comes_first_whatever_the_vectors_say() {
        let (index, off) = (index(), [vector([0.9, 0.0, 0.0])]);
        for query in ["get_weather", "getWeather", "Get weather", "get_wether", "please use get_weather", "GET-WEATHER"]
        {
            let found = index.find(query, &off, &|_| true, 2);
            assert_eq!((found.tools.first(), found.matched), (Some(&2), true), "{query}");
            assert_eq!(found.tools.len(), 2);
        }
        let hidden = index.find("get_weather", &off, &|tool| tool != 2, 5);
        assert_eq!(hidden.tools, [0, 1]);
    }

    #[test]
    fn nothing_above_the_background_is_said_to_be_nothing() {
        let index = index();
        let flat = [vector([0.5, 0.5, 0.5])];
        assert!(!index.find("طباعة", &flat, &|_| true, 5).matched);
        assert!(index.find("طباعة", &[vector([0.1, 0.1, 0.9])], &|_| true, 5).matched);
        assert!(index.find("record", &flat, &|_| true, 5).matched);
        assert!(!index.find("record", &flat, &|tool| tool == 2, 5).matched);
        assert_eq!(index.find("record", &flat, &|_| false, 5), Found { tools: vec![], matched: false });
    }
}
