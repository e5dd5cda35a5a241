//! Before and after, on messages that a head was not fitted to. NOT the decision what to do about it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::examples::{Example, Taught};
use crate::eval::figures::{Interval, interval};
use crate::retrieval::head::Head;
use crate::retrieval::question::Question;
use crate::retrieval::width::Width;

/// Where completeness is read, besides as many as are selected.
const SHALLOW: [usize; 2] = [1, 5];

/// What a head changes for some messages. Shares of messages with all their tools within a depth; 0 to 1.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Which messages these are.
    pub part: String,
    pub lang: String,
    pub cases: usize,
    /// Within 1, 5 and as many as are selected.
    pub before: [f64; 3],
    pub after: [f64; 3],
    /// Of the share within as many as are selected; its interval is of the difference, message by message.
    pub gain: Interval,
    /// Of the mean of the three shares.
    pub gain_overall: Interval,
}

/// Hits of one message within the three depths, before and after.
#[derive(Debug, Clone, Copy)]
pub struct Hits {
    before: [f64; 3],
    after: [f64; 3],
}

/// Hits by language.
pub type ByLang = BTreeMap<String, Vec<Hits>>;

/// Ranks the messages that are `wanted` without and with the head.
pub fn hits(taught: &Taught, head: &Head, k: Width, wanted: &dyn Fn(&Example) -> bool, out: &mut ByLang) {
    for example in taught.examples.iter().filter(|example| wanted(example)) {
        let index = &taught.space.index;
        let worst = |question: &Question| {
            let ranked = index.rank(question, &example.vectors);
            let places = ranked.iter().enumerate().filter(|(_, scored)| example.needed.contains(&scored.tool));
            let worst = places.map(|(at, _)| at + 1).max().unwrap_or(usize::MAX);
            within(worst, k.taken(&ranked, &index.named(question)).count)
        };
        let before = worst(&example.question);
        let after = worst(&example.question.clone().bent(head, &example.vectors));
        out.entry(example.lang.clone()).or_default().push(Hits { before, after });
    }
}

/// By language, then all together when there are several.
pub fn judged(part: &str, by_lang: &ByLang) -> Vec<Judged> {
    let mut out: Vec<Judged> = by_lang.iter().map(|(lang, hits)| Judged::of(part, lang, hits)).collect();
    if out.len() != 1 {
        let all: Vec<Hits> = by_lang.values().flatten().copied().collect();
        out.push(Judged::of(part, crate::eval::report::ALL, &all));
    }
    out
}

impl Judged {
    fn of(part: &str, lang: &str, hits: &[Hits]) -> Self {
        let count = hits.len().max(1) as f64;
        let mut mean = ([0.0; 3], [0.0; 3]);
        for hit in hits {
            mean.0.iter_mut().zip(hit.before).for_each(|(sum, hit)| *sum += hit / count);
            mean.1.iter_mut().zip(hit.after).for_each(|(sum, hit)| *sum += hit / count);
        }
        let deepest = |[_, _, hit]: [f64; 3]| hit;
        let gains: Vec<f64> = hits.iter().map(|hit| deepest(hit.after) - deepest(hit.before)).collect();
        let overall = |hit: &Hits| (hit.after.iter().sum::<f64>() - hit.before.iter().sum::<f64>()) / 3.0;
        let overall: Vec<f64> = hits.iter().map(overall).collect();
        Self {
            part: part.to_owned(),
            lang: lang.to_owned(),
            cases: hits.len(),
            before: mean.0,
            after: mean.1,
            gain: interval(&gains),
            gain_overall: interval(&overall),
        }
    }
}

fn within(place: usize, k: usize) -> [f64; 3] {
    let [one, five] = SHALLOW;
    [one, five, k].map(|depth| f64::from(u8::from(place <= depth)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::*;
    use crate::embed::Space;
    use crate::retrieval::document::Document;
    use crate::retrieval::index::Index;
    use crate::tune::log::Heard;

    #[test]
    fn as_many_are_selected_as_are_served() {
        let tool = |name: &str| Document { name: name.into(), ..Document::default() };
        let documents: Vec<Document> = ["book_room", "pay_invoice", "play_song"].map(tool).into();
        let matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].concat();
        let index = Arc::new(Index::build(documents, matrix, &[]).expect("an index"));
        let space = Space { index, bank: Arc::default(), model: "m".into() };
        let text = "run book_room, then pay_invoice";
        let called = ["book_room", "pay_invoice"].map(str::to_owned).into();
        let heard = Heard { text: Some(text.into()), called, ..Heard::default() };
        let vectors = HashMap::from([(text.to_owned(), Arc::from([0.0, 0.0, 1.0]))]);
        let taught = Taught::of_log("log", &space, &[heard], &vectors);
        let head = Head::new("m", vec![0.0; 3], &[0.0; 9]).expect("a head");
        let mut out = ByLang::new();
        hits(&taught, &head, Width::Fixed(1), &|_| true, &mut out);
        let all = out.into_values().flatten().next().expect("one message");
        assert_eq!([all.before[2], all.after[2]], [1.0, 1.0], "one is asked for, two are named");
    }
}
