//! What the model said in one leg, in its order, as the one `Content` that the provider must see again.
//! NOT what the agent sees of it.
//!
//! Plain text of consecutive chunks becomes one part. A signature stays on the part it came on: Google refuses a
//! history in which a signed part was merged with another.

use crate::wire::gemini::reply::chunk::Part;
use crate::wire::json::quoted;

#[derive(Debug, Default)]
pub(super) struct Said {
    parts: Vec<String>,
    /// Plain text that may still grow: the text, and is it a thought?
    open: Option<(String, bool)>,
}

impl Said {
    pub(super) fn push(&mut self, part: &Part<'_>) {
        let Some(text) = part.text.as_ref().filter(|_| part.plain) else {
            self.settle();
            self.parts.push(part.raw.to_owned());
            return;
        };
        match &mut self.open {
            Some((open, thought)) if *thought == part.thought => open.push_str(text),
            _ => {
                self.settle();
                self.open = Some((text.to_string(), part.thought));
            }
        }
    }

    /// A content of the model's.
    pub(super) fn content(&self) -> String {
        let open = self.open.as_ref().and_then(written);
        let parts: Vec<_> = self.parts.iter().map(String::as_str).chain(open.as_deref()).collect();
        format!(r#"{{"role":"model","parts":[{}]}}"#, parts.join(","))
    }

    fn settle(&mut self) {
        self.parts.extend(self.open.take().as_ref().and_then(written));
    }
}

/// An empty text is no part: some backends refuse one.
fn written((text, thought): &(String, bool)) -> Option<String> {
    let mark = if *thought { r#","thought":true"# } else { "" };
    (!text.is_empty()).then(|| format!(r#"{{"text":{}{mark}}}"#, quoted(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::gemini::reply::chunk::Chunk;

    #[test]
    fn plain_text_is_merged_and_a_signed_part_never() {
        let mut said = Said::default();
        for parts in [
            r#"{"text":"I ","thought":true},{"text":"think","thought":true},{"text":"Let \u0041 "}"#,
            r#"{"text":"look"},{"text":"!","thoughtSignature":"s0"},{"text":""}"#,
            r#"{"functionCall":{"name":"f","args":{"n":9007199254740993001,"d":1e16}},"thoughtSignature":"s1"}"#,
            r#"{"text":"","thoughtSignature":"s2"},{"text":"end"}"#,
        ] {
            let text = format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}}}}]}}"#);
            let chunk = Chunk::parse(&text).expect("a chunk");
            chunk.parts.iter().for_each(|part| said.push(part));
        }
        let expected = r#"{"role":"model","parts":[{"text":"I think","thought":true},{"text":"Let A look"},{"text":"!","thoughtSignature":"s0"},{"functionCall":{"name":"f","args":{"n":9007199254740993001,"d":1e16}},"thoughtSignature":"s1"},{"text":"","thoughtSignature":"s2"},{"text":"end"}]}"#;
        assert_eq!(said.content(), expected);
    }
}
