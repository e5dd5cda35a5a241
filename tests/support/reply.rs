//! What the provider shall say, whatever the wire: parts, finish, usage, and the
//! faults on the way. NOT its bytes (openai.rs, gemini.rs), NOT the socket (wiring.rs).

use std::time::Duration;

use serde_json::Value;

/// One thing said.
#[derive(Debug, Clone)]
pub enum Part {
    Reasoning(String),
    Text(String),
    /// Arguments as text, so that they can be broken.
    Call {
        id: Option<String>,
        name: String,
        arguments: String,
    },
}

/// Tokens of one leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub prompt: u64,
    pub cached: u64,
    pub completion: u64,
}

/// Where an OpenAI stream reports usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageAt {
    /// Kimi: in `choices[0]` of the end frame always, and in a last frame if `include_usage` asks for one.
    #[default]
    Both,
    /// Only in `choices[0]`.
    Choice,
    /// Only in the last frame, if asked for.
    Top,
}

/// How lines of a stream end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lines {
    #[default]
    Lf,
    CrLf,
    Cr,
}

impl Lines {
    pub fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }
}

/// What goes wrong between the provider and its client. Offsets count bytes of the body.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Writes of that many bytes, each its own HTTP chunk; else one per frame.
    pub every: Option<usize>,
    /// Rest between writes.
    pub pause: Option<Duration>,
    /// After that many bytes wait for `Provider::release`.
    pub stall: Option<usize>,
    /// After that many bytes the connection ends (FIN), the body unfinished.
    pub cut: Option<usize>,
    /// After that many bytes the connection is reset.
    pub reset: Option<usize>,
    pub gzip: bool,
    pub trailers: Vec<(String, String)>,
}

/// One scripted reply.
#[derive(Debug, Clone)]
pub struct Reply {
    pub parts: Vec<Part>,
    /// Else what the wire says for these parts.
    pub finish: Option<String>,
    pub usage: Option<Usage>,
    pub usage_at: UsageAt,
    pub lines: Lines,
    /// OpenAI streams: `[DONE]` at the end.
    pub done: bool,
    /// Real calls of a stream in one frame (Gemini: one chunk), not one each.
    pub together: bool,
    /// Gemini compatible: the finish reason stands in the last part's chunk.
    pub finish_joined: bool,
    /// Gemini: signature on the first call.
    pub signed: bool,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Instead of all above: these pieces.
    pub raw: Option<Vec<Vec<u8>>>,
    pub faults: Faults,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            finish: None,
            usage: Some(Usage { prompt: 1000, cached: 400, completion: 20 }),
            usage_at: UsageAt::default(),
            lines: Lines::default(),
            done: true,
            together: false,
            finish_joined: true,
            signed: true,
            status: 200,
            headers: Vec::new(),
            raw: None,
            faults: Faults::default(),
        }
    }
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self::default().and_text(text)
    }

    pub fn call(name: &str, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// A call of `find_tools`.
    pub fn find(query: &str) -> Self {
        Self::default().and_find(query)
    }

    /// A status and a body, as they are.
    pub fn status(status: u16, body: &str) -> Self {
        Self { status, ..Self::raw("application/json", vec![body.into()]) }
    }

    /// 429 with `retry-after`.
    pub fn busy(seconds: u32) -> Self {
        let body = r#"{"error":{"message":"rate limit reached","type":"rate_limit_reached_error"}}"#;
        Self::status(429, body).header("retry-after", &seconds.to_string())
    }

    /// A body in these pieces.
    pub fn raw(content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        Self { raw: Some(pieces), ..Self::default() }.header("content-type", content_type)
    }

    pub fn and_text(self, text: &str) -> Self {
        self.and(Part::Text(text.into()))
    }

    pub fn and_reasoning(self, text: &str) -> Self {
        self.and(Part::Reasoning(text.into()))
    }

    pub fn and_call(self, name: &str, arguments: Value) -> Self {
        self.and_broken_call(name, &arguments.to_string())
    }

    /// A call whose arguments are this text, JSON or not.
    pub fn and_broken_call(self, name: &str, arguments: &str) -> Self {
        self.and(Part::Call { id: None, name: name.into(), arguments: arguments.into() })
    }

    pub fn and_find(self, query: &str) -> Self {
        self.and_call("find_tools", serde_json::json!({ "query": query }))
    }

    fn and(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The id of the last call.
    pub fn with_id(mut self, given: &str) -> Self {
        if let Some(Part::Call { id, .. }) = self.parts.last_mut() {
            *id = Some(given.into());
        }
        self
    }

    pub fn finish(self, finish: &str) -> Self {
        Self { finish: Some(finish.into()), ..self }
    }

    pub fn usage(self, prompt: u64, cached: u64, completion: u64) -> Self {
        Self { usage: Some(Usage { prompt, cached, completion }), ..self }
    }

    pub fn no_usage(self) -> Self {
        Self { usage: None, ..self }
    }

    pub fn usage_at(self, usage_at: UsageAt) -> Self {
        Self { usage_at, ..self }
    }

    pub fn lines(self, lines: Lines) -> Self {
        Self { lines, ..self }
    }

    pub fn without_done(self) -> Self {
        Self { done: false, ..self }
    }

    pub fn together(self) -> Self {
        Self { together: true, ..self }
    }

    pub fn finish_apart(self) -> Self {
        Self { finish_joined: false, ..self }
    }

    pub fn unsigned(self) -> Self {
        Self { signed: false, ..self }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Writes of `bytes` bytes.
    pub fn every(mut self, bytes: usize) -> Self {
        self.faults.every = Some(bytes);
        self
    }

    pub fn pause(mut self, pause: Duration) -> Self {
        self.faults.pause = Some(pause);
        self
    }

    pub fn stall(mut self, after: usize) -> Self {
        self.faults.stall = Some(after);
        self
    }

    pub fn cut(mut self, after: usize) -> Self {
        self.faults.cut = Some(after);
        self
    }

    pub fn reset(mut self, after: usize) -> Self {
        self.faults.reset = Some(after);
        self
    }

    pub fn gzip(mut self) -> Self {
        self.faults.gzip = true;
        self
    }

    pub fn trailer(mut self, name: &str, value: &str) -> Self {
        self.faults.trailers.push((name.into(), value.into()));
        self
    }

    /// Does it call anything?
    pub fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }

    /// All text parts in a row.
    pub fn said(&self) -> String {
        self.parts.iter().filter_map(|p| if let Part::Text(t) = p { Some(t.as_str()) } else { None }).collect()
    }

    /// All reasoning in a row; `None` when there is none.
    pub fn thought(&self) -> Option<String> {
        let parts: Vec<_> = self
            .parts
            .iter()
            .filter_map(|p| if let Part::Reasoning(t) = p { Some(t.as_str()) } else { None })
            .collect();
        (!parts.is_empty()).then(|| parts.concat())
    }
}

/// `text` in pieces of at most `size` characters; one empty piece for the empty text.
pub fn pieces(text: &str, size: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    match chars.is_empty() {
        true => vec![String::new()],
        false => chars.chunks(size).map(|c| c.iter().collect()).collect(),
    }
}

/// The signature of a call: base64, since google-genai for Python decodes and encodes it again.
pub fn signature(number: u64, name: &str) -> String {
    let sum = name.bytes().fold(0u16, |sum, byte| sum.rotate_left(3) ^ u16::from(byte));
    format!("sig0{number:08x}{sum:04x}")
}
