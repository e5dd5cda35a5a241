//! What a request says, whatever its format: borrowed from the body, each part
//! with the span it stands in. NOT owned copies of bodies, NOT what to do about it.

use std::borrow::Cow;
use std::ops::Range;

/// A chat request as its format shows it.
#[derive(Debug)]
pub struct ChatView<'a> {
    /// The model's name; from the path for Gemini.
    pub model: Cow<'a, str>,
    /// Does the agent ask for a stream?
    pub stream: bool,
    /// Every declared tool in request order, flattened over Gemini's `Tool` objects; those that stand in messages last.
    pub tools: Vec<ToolView<'a>>,
    /// The system prompt(s), as raw JSON: opaque, only hashed.
    pub system: Vec<&'a str>,
    /// The conversation in order. OpenAI's system messages stand here too, as [`Role::System`].
    pub messages: Vec<MessageView<'a>>,
    /// What the agent says about which tool to call.
    pub choice: Choice<'a>,
    /// What keeps a request from being narrowed, whatever its tools.
    pub traits: Traits,
    /// Spans that only the format's own writer needs.
    pub layout: Layout,
}

/// Features of a request that change how it may be treated.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// `n > 1`, `candidateCount > 1`.
    pub several_choices: bool,
    /// A JSON answer is demanded: `response_format` of a json kind, `responseSchema`, `responseMimeType`.
    pub structured: bool,
    /// `cachedContent`, `extra_body.google.cached_content`.
    pub cached_content: bool,
    /// Kimi's partial mode: the last message carries `"partial": true`.
    pub partial: bool,
    /// The client narrows by itself: `defer_loading`, tool search, `tool_reference`.
    pub client_search: bool,
    /// `stream_options.include_usage`.
    pub usage_frame: bool,
}

/// One entry of the roster.
#[derive(Debug)]
pub struct ToolView<'a> {
    /// A plain function, or something that is never ranked, dropped or moved.
    pub kind: ToolKind,
    /// `""` where the entry has none.
    pub name: Cow<'a, str>,
    pub description: Cow<'a, str>,
    /// The JSON schema of its parameters, raw.
    pub parameters: Option<Cow<'a, str>>,
    /// The entry's own bytes. Gemini: of the one declaration; of the whole `Tool` for [`ToolKind::Fixed`].
    pub text: Cow<'a, str>,
    /// Gemini: which `Tool` object it stands in. 0 elsewhere.
    pub group: usize,
}

impl ToolView<'_> {
    /// The same, borrowed from this one.
    pub fn lent(&self) -> ToolView<'_> {
        ToolView {
            kind: self.kind,
            name: Cow::Borrowed(&self.name),
            description: Cow::Borrowed(&self.description),
            parameters: self.parameters.as_deref().map(Cow::Borrowed),
            text: Cow::Borrowed(&self.text),
            group: self.group,
        }
    }

    /// The same, borrowed from nothing.
    pub fn owned(self) -> ToolView<'static> {
        ToolView {
            kind: self.kind,
            name: Cow::Owned(self.name.into_owned()),
            description: Cow::Owned(self.description.into_owned()),
            parameters: self.parameters.map(|parameters| Cow::Owned(parameters.into_owned())),
            text: Cow::Owned(self.text.into_owned()),
            group: self.group,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// May be withheld.
    Function,
    /// A function whose place is the client's plan (a cache mark, callers other than the model): always bound, in its
    /// place.
    Pinned,
    /// Built-ins, server tools, entries that cannot be read: always bound, in their place.
    Fixed,
    /// Declared by the agent in a message (Kimi K3): always bound, and never part of the block.
    Placed,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    /// A message that holds nothing but answers to calls.
    Tool,
}

/// One message of the conversation.
#[derive(Debug)]
pub struct MessageView<'a> {
    pub role: Role,
    /// Its text parts in order; not thoughts, not reasoning.
    pub texts: Vec<Cow<'a, str>>,
    pub calls: Vec<CallView<'a>>,
    pub answers: Vec<AnswerView<'a>>,
    /// Where its JSON stands in the body.
    pub span: Range<usize>,
}

/// A call the model made earlier.
#[derive(Debug)]
pub struct CallView<'a> {
    /// `""` where the format has none.
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// OpenAI: the text of the string. Gemini: the raw object.
    pub arguments: Cow<'a, str>,
}

/// An answer to such a call.
#[derive(Debug)]
pub struct AnswerView<'a> {
    /// `""` where the format has none.
    pub id: Cow<'a, str>,
    /// The tool's name; `""` where the format leaves it out.
    pub name: Cow<'a, str>,
    /// Does it say that the call failed? By the format's own field, else as far as [`super::verdict`] can tell.
    pub failed: bool,
}

/// What the agent says about which tool to call.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// The model decides (also when nothing is said).
    Auto,
    /// No call.
    None,
    /// Some call.
    Required,
    /// Only these: a named function, OpenAI's `allowed_tools`, Gemini's `allowedFunctionNames`.
    Only(Vec<Cow<'a, str>>),
}

/// Spans for the writer of the format. All empty where the body has no such part.
#[derive(Debug, Default)]
pub struct Layout {
    /// The value of `tools`.
    pub tools: Range<usize>,
    /// Gemini: each element of `tools` with the span of its declarations array (empty: it has none).
    pub groups: Vec<Group>,
    /// The value of `messages` or `contents`: an array.
    pub messages: Range<usize>,
    /// The value of the cap on the reply's tokens, and the cap.
    pub max_tokens: Option<(Range<usize>, u64)>,
    /// Which of `ChatView::tools` are a list's that the request refers to: a stub stands for them in the body, so what
    /// stands there is never the block. `None`: the request refers to none.
    pub lent: Option<Range<usize>>,
}

/// One Gemini `Tool` object.
#[derive(Debug, Clone)]
pub struct Group {
    pub span: Range<usize>,
    /// The value of `functionDeclarations`; empty: none.
    pub declarations: Range<usize>,
    /// Does it hold more than declarations (search, code execution)?
    pub mixed: bool,
}
