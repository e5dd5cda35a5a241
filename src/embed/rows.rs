//! A row: the numbers that stand for one tool or phrase, the texts they come from, and what makes numbers acceptable.
//! NOT where rows are kept.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::retrieval::document::{self, Document};
use crate::retrieval::embedder::{EmbedError, Task};

/// Hash of the content of a row.
pub(super) type Key = [u8; 32];
/// As many numbers as the embedder has dimensions.
pub(super) type Numbers = Arc<[f32]>;

/// What a row is made from: the unit vectors of its texts are added, so that one product with a query is the sum of
/// their cosines.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) texts: Vec<String>,
    pub(super) task: Task,
    /// The sum is brought to unit length: however many texts, it is one voice.
    pub(super) is_unit: bool,
}

impl Row {
    /// The rows of a tool: what it is called and does, and all it says; apart, since how much the second counts is the
    /// roster's to say. Then that of its keywords, if it has some. `model`: the embedder's identity.
    pub(super) fn of_document(document: &Document, model: &str) -> ([Self; 2], Option<Self>) {
        let key = document::key(document, model);
        let mut texts = document::texts(document);
        let all = texts.split_off(texts.len().saturating_sub(1));
        let row = |part: &str, texts, is_unit| {
            let key = Sha256::new().chain_update(&key).chain_update(part).finalize().into();
            Self { key, texts, task: Task::Document, is_unit }
        };
        let runs = Some(document::runs(document)).filter(|runs| !runs.is_empty());
        ([row("said", texts, false), row("all", all, false)], runs.map(|runs| row("keywords", runs, true)))
    }

    /// One text of a tool for itself, for those who want to see what it gives.
    pub(super) fn of_text(text: &str) -> Self {
        let key = Sha256::new().chain_update(b"text\0").chain_update(text).finalize().into();
        Self { key, texts: vec![text.to_owned()], task: Task::Document, is_unit: false }
    }

    /// A phrase is compared with messages, so it is embedded as they are.
    pub(super) fn of_phrase(phrase: &str) -> Self {
        let key = Sha256::new().chain_update(b"phrase\0").chain_update(phrase).finalize().into();
        Self { key, texts: vec![phrase.to_owned()], task: Task::Query, is_unit: false }
    }
}

/// Hash of rows in their order, in hex.
pub(super) fn corpus_hash(rows: &[Row]) -> String {
    let mut hash = Sha256::new();
    for row in rows {
        hash.update(row.key);
    }
    hex::encode(hash.finalize())
}

/// Could these be the numbers of a row of at most three texts? Finite, and of a length that unit vectors add up to.
pub(super) fn plausible(numbers: &[f32]) -> bool {
    let norm = norm(numbers);
    norm.is_finite() && (1e-3..=3.01).contains(&norm)
}

/// An embedder's answer, checked and brought to unit length: `count` vectors of `dimensions` numbers.
pub(super) fn checked(answer: Vec<Vec<f32>>, count: usize, dimensions: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
    if answer.len() != count {
        return Err(EmbedError::Nonsense(format!("{} vectors for {count} texts", answer.len())));
    }
    answer.into_iter().map(|vector| unit(vector, dimensions)).collect()
}

/// The sum of the vectors. Shape: `dimensions`.
pub(super) fn added<'a>(vectors: impl IntoIterator<Item = &'a Vec<f32>>, dimensions: usize) -> Numbers {
    let mut sum = vec![0.0; dimensions];
    for vector in vectors {
        sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += number);
    }
    sum.into()
}

/// The same brought to unit length; vectors that cancel out stay what they are.
pub(super) fn averaged<'a>(vectors: impl IntoIterator<Item = &'a Vec<f32>>, dimensions: usize) -> Numbers {
    let sum = added(vectors, dimensions);
    unit(sum.to_vec(), dimensions).map_or(sum, Into::into)
}

fn unit(mut vector: Vec<f32>, dimensions: usize) -> Result<Vec<f32>, EmbedError> {
    if vector.len() != dimensions {
        return Err(EmbedError::Nonsense(format!("{} numbers instead of {dimensions}", vector.len())));
    }
    let norm = norm(&vector);
    if !norm.is_finite() {
        return Err(EmbedError::Nonsense("a number is not finite".to_owned()));
    }
    if norm < 1e-12 {
        return Err(EmbedError::Nonsense("a vector is all zero".to_owned()));
    }
    vector.iter_mut().for_each(|number| *number = (f64::from(*number) / norm) as f32);
    Ok(vector)
}

/// In f64: the square of a large f32 is not finite in f32.
fn norm(numbers: &[f32]) -> f64 {
    numbers.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
        let said = |answer| checked(answer, 1, 2).unwrap_err().to_string();
        assert!(said(vec![]).ends_with("0 vectors for 1 texts"));
        assert!(said(vec![vec![1.0]]).ends_with("1 numbers instead of 2"));
        assert!(said(vec![vec![1.0, f32::NAN]]).ends_with("not finite"));
        assert!(said(vec![vec![f32::INFINITY, 1.0]]).ends_with("not finite"));
        assert!(said(vec![vec![0.0, 0.0]]).ends_with("all zero"));
        assert_eq!(checked(vec![vec![0.0, 4e30]], 1, 2), Ok(vec![vec![0.0, 1.0]]));
    }

    #[test]
    fn rows_add_up_and_are_judged_by_length() {
        let row = added(&[vec![1.0, 0.0], vec![1.0, 0.0], vec![0.0, 1.0]], 2);
        assert_eq!(*row, [2.0, 1.0]);
        assert_eq!(*averaged(&[vec![3.0, 0.0], vec![0.0, 4.0]], 2), [0.6, 0.8]);
        assert_eq!(*averaged(&[vec![1.0, 0.0], vec![-1.0, 0.0]], 2), [0.0, 0.0]);
        assert!(plausible(&row) && plausible(&[3.0, 0.0]));
        for bad in [&[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY, 0.0], &[4.0, 0.0]] {
            assert!(!plausible(bad), "{bad:?}");
        }
    }
}
