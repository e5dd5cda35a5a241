//! Decision records as labelled messages: what a turn's model called is what its message needed. NOT the record's
//! shape, NOT which tools there are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Problem;
use crate::decision::Decision;
use crate::retrieval::question::Question;

/// A message of a log and the tools that were called for it.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Digest of what was written.
    pub hash: String,
    pub lang: String,
    pub text: Option<String>,
    /// Its vector, when the log holds no text and it was one passage.
    pub vector: Option<Arc<[f32]>>,
    /// Identity of the embedder of `vector`.
    pub embedder: String,
    pub called: Vec<String>,
}

/// What stands in the place of a text that the log does not hold: no roster knows a word of it.
const UNKNOWN: &str = "\u{2022}";

/// The turns of these logs in which something was called. Lines that are no records are passed over.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Heard>, Problem> {
    let mut turns: HashMap<(String, usize, String), usize> = HashMap::new();
    let mut heard: Vec<Heard> = Vec::new();
    for path in paths {
        for decision in records(path)? {
            let Some(query) = decision.query.as_ref().filter(|query| !query.hash.is_empty()) else { continue };
            let turn = (decision.conversation.clone(), decision.turn, query.hash.clone());
            let at = *turns.entry(turn).or_insert_with(|| {
                heard.push(Heard { hash: query.hash.clone(), lang: "-".into(), ..Heard::default() });
                heard.len() - 1
            });
            if let Some(turn) = heard.get_mut(at) {
                turn.hear(&decision);
            }
        }
    }
    heard.retain(|turn| !turn.called.is_empty() && (turn.text.is_some() || turn.vector.is_some()));
    Ok(heard)
}

impl Heard {
    /// As it is ranked.
    pub fn question(&self) -> Question {
        Question::bare(self.text.as_deref().unwrap_or(UNKNOWN))
    }

    fn hear(&mut self, decision: &Decision) {
        self.called.extend(decision.called.iter().map(|called| called.name.clone()));
        let Some(query) = &decision.query else { return };
        if let Some(lang) = &query.lang {
            self.lang.clone_from(lang);
        }
        if query.text.is_some() {
            self.text.clone_from(&query.text);
        }
        if let ([vector], None) = (query.vectors.as_slice(), &self.text) {
            self.vector = unit(vector);
            self.embedder.clone_from(&query.embedder);
        }
    }
}

fn records(path: &Path) -> Result<Vec<Decision>, Problem> {
    let text = std::fs::read_to_string(path).map_err(|error| Problem::Read { path: path.to_owned(), error })?;
    Ok(text.lines().filter_map(|line| Decision::read(line).ok()).collect())
}

/// Eight bits a number back to unit length.
fn unit(vector: &[i8]) -> Option<Arc<[f32]>> {
    let norm = vector.iter().map(|number| f32::from(*number).powi(2)).sum::<f32>().sqrt();
    (norm > 0.0).then(|| vector.iter().map(|number| f32::from(*number) / norm).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_turn_are_its_labels() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let lines = [
            r#"{"conversation":"c","turn":1,"call":1,"query":{"hash":"q1","lang":"ar","embedder":"m","vectors":[[127,0]]},"called":[{"name":"a"}]}"#,
            r#"{"conversation":"c","turn":1,"call":2,"query":{"hash":"q1"},"called":[{"name":"b"}]}"#,
            r#"{"conversation":"c","turn":2,"call":1,"query":{"hash":"q2","text":"send it"},"called":[{"name":"a"}]}"#,
            r#"{"conversation":"c","turn":3,"call":1,"query":{"hash":"q3","text":"thanks"}}"#,
            r#"{"conversation":"d","turn":1,"call":1,"query":{"hash":"q4"},"called":[{"name":"a"}]}"#,
            "no record",
        ];
        std::fs::write(file.path(), lines.join("\n")).expect("written");
        let heard = read(&[file.path().to_owned()]).expect("read");
        let [first, second] = heard.as_slice() else { panic!("{heard:?}") };
        assert_eq!((first.called.as_slice(), first.lang.as_str()), (&["a".to_owned(), "b".to_owned()][..], "ar"));
        assert_eq!(first.vector.as_deref(), Some(&[1.0, 0.0][..]));
        assert_eq!((second.text.as_deref(), second.called.len()), (Some("send it"), 1));
        assert!(read(&["/no/such/file".into()]).is_err());
    }
}
