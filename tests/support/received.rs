//! One request as it came over the wire, and the questions that tests ask of it.
//! NOT whether it is a good one (openai.rs, gemini.rs, anthropic.rs).

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::Value;

/// A chat route's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    OpenAi,
    /// Gemini's OpenAI-compatible endpoint.
    Compat,
    Gemini,
    Anthropic,
}

#[derive(Debug, Clone, Default)]
pub struct Received {
    pub method: String,
    /// Path and query as sent.
    pub path: String,
    /// In order, names as sent.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(String, String)>,
    /// Why the provider answered 400, if it did.
    pub refused: Option<String>,
}

impl Received {
    /// Request line and headers; `None` at the end of the connection.
    pub fn head(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let line = line(reader)?;
        let mut words = line.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some(Self { method, path, headers: fields(reader)?, ..Self::default() })
    }

    /// Reads the body that the headers announce.
    pub fn read_body(&mut self, reader: &mut BufReader<TcpStream>) -> Option<()> {
        if self.chunked() {
            loop {
                let size = usize::from_str_radix(line(reader)?.split(';').next()?.trim(), 16).ok()?;
                if size == 0 {
                    self.trailers = fields(reader)?;
                    return Some(());
                }
                let start = self.body.len();
                self.body.resize(start + size, 0);
                reader.read_exact(&mut self.body[start..]).ok()?;
                line(reader)?;
            }
        }
        self.body = vec![0; self.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0)];
        reader.read_exact(&mut self.body).ok()
    }

    pub fn chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().contains("chunked"))
    }

    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    pub fn wire(&self) -> Option<Wire> {
        let path = self.path.split('?').next()?;
        if path.ends_with("/openai/chat/completions") {
            Some(Wire::Compat)
        } else if path.ends_with("/chat/completions") {
            Some(Wire::OpenAi)
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Some(Wire::Gemini)
        } else if path.ends_with("/v1/messages") {
            Some(Wire::Anthropic)
        } else {
            None
        }
    }

    pub fn embeds(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        path.ends_with("/embeddings") || path.ends_with(":batchEmbedContents")
    }

    pub fn streams(&self) -> bool {
        self.path.contains(":streamGenerateContent") || self.json()["stream"] == true
    }

    /// The body; `Null` when it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn model(&self) -> String {
        match self.wire() {
            Some(Wire::Gemini) => {
                let action = self.path.rsplit("/models/").next().unwrap_or_default();
                action.split(':').next().unwrap_or_default().to_owned()
            }
            _ => self.json()["model"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Every declaration in order: OpenAI `tools[]` then those of messages; Gemini over all `Tool` objects.
    pub fn declarations(&self) -> Vec<Value> {
        let body = self.json();
        if self.wire() == Some(Wire::Gemini) {
            return list(&body["tools"])
                .iter()
                .flat_map(|tool| list(either(tool, "functionDeclarations", "function_declarations")))
                .collect();
        }
        let mut all = list(&body["tools"]);
        for message in list(&body["messages"]) {
            all.extend(list(&message["tools"]));
        }
        all
    }

    /// The names of [`Self::declarations`].
    pub fn tools(&self) -> Vec<String> {
        let name = |d: &Value| d["function"]["name"].as_str().or(d["name"].as_str()).unwrap_or_default().to_owned();
        self.declarations().iter().map(name).collect()
    }

    pub fn declares(&self, name: &str) -> bool {
        self.tools().iter().any(|tool| tool == name)
    }

    /// `messages` or `contents`.
    pub fn messages(&self) -> Vec<Value> {
        let body = self.json();
        list(if self.wire() == Some(Wire::Gemini) { &body["contents"] } else { &body["messages"] })
    }

    /// The text of the last message that a person wrote.
    pub fn asked(&self) -> String {
        let gemini = self.wire() == Some(Wire::Gemini);
        let text = |m: &Value| match gemini {
            true => m["parts"][0]["text"].as_str().map(str::to_owned),
            false => m["content"].as_str().map(str::to_owned).or(m["content"][0]["text"].as_str().map(str::to_owned)),
        };
        let user = |m: &&Value| m["role"] == "user" && text(m).is_some();
        self.messages().iter().rev().find(user).and_then(text).unwrap_or_default()
    }

    /// Is the last message the result of a call?
    pub fn reports(&self) -> bool {
        self.messages().last().is_some_and(|m| {
            let result = m["parts"][0].get("functionResponse").is_some() || m["content"][0]["type"] == "tool_result";
            m["role"] == "tool" || result
        })
    }
}

/// The elements of an array; empty for anything else.
pub fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// The member of either spelling.
pub fn either<'v>(value: &'v Value, camel: &str, snake: &str) -> &'v Value {
    if value[camel].is_null() { &value[snake] } else { &value[camel] }
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut bytes = Vec::new();
    reader.read_until(b'\n', &mut bytes).ok()?;
    bytes.ends_with(b"\n").then(|| String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

fn fields(reader: &mut BufReader<TcpStream>) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            return Some(fields);
        }
        let (name, value) = line.split_once(':')?;
        fields.push((name.to_owned(), value.trim().to_owned()));
    }
}
