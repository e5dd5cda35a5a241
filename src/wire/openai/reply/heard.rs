//! What the model said in one leg, complete: text, reasoning and calls in their
//! own spelling. From it come the leg's report and the message the provider must
//! see again. NOT what the client was shown of it, except as a note of how much.

use super::usage::Usages;
use crate::wire::dispatch::Native;
use crate::wire::hidden::{Hidden, Whose};
use crate::wire::json::{self, Object};
use crate::wire::query::query;
use crate::wire::reply::{Call, Leg, Search};
use crate::wire::request::{Answer, Exchange};
use crate::wire::text;

/// One leg. Texts are spelt as in JSON strings, so that an emoji cut in two by the provider is whole again.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) content: String,
    /// Under the key it came with; there even when empty, since Kimi wants an empty one back.
    pub(super) reasoning: Option<(&'static str, String)>,
    /// `extra_content` of the message itself: Gemini signs texts there.
    pub(super) extra: Option<String>,
    pub(super) calls: Vec<Called>,
    pub(super) shown_content: String,
    pub(super) shown_reasoning: String,
    pub(super) finish: Option<String>,
    pub(super) failed: bool,
    pub(super) usage: Usages,
}

/// One call, put together from its fragments.
#[derive(Debug, Default)]
pub(super) struct Called {
    pub(super) whose: Whose,
    /// The provider's own number for it.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    kind: String,
    pub(super) name: String,
    /// Spelt as in a JSON string.
    arguments: String,
    /// Members that have no meaning here and must survive (signatures).
    extras: Vec<(String, String)>,
    function_extras: Vec<(String, String)>,
    /// What the agent sees of a `call_tool`.
    pub(super) native: Option<Native>,
    /// The number under which the client knows it.
    pub(super) slot: Option<usize>,
}

/// The names under which reasoning comes.
pub(super) const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

impl Heard {
    /// Takes a delta or a whole message; returns its text and its reasoning.
    pub(super) fn message<'a>(&mut self, message: &Object<'a>) -> (&'a str, &'a str) {
        let content = message.find("content").and_then(text::inner).unwrap_or_default();
        self.content.push_str(content);
        let found = REASONING.into_iter().find_map(|key| Some((key, message.find(key).and_then(text::inner)?)));
        if let Some((key, reasoning)) = found {
            self.reasoning.get_or_insert((key, String::new())).1.push_str(reasoning);
        }
        if let Some(extra) = message.find("extra_content").filter(|raw| !json::is_null(raw)) {
            self.extra = Some(extra.get().to_owned());
        }
        (content, found.map_or("", |(_, reasoning)| reasoning))
    }

    /// Takes a fragment of a call, or a whole one; returns which call it belongs to and whether it is its first.
    pub(super) fn fragment(&mut self, fragment: &Object<'_>, hidden: &Hidden) -> (usize, bool) {
        let id = fragment.text("id").unwrap_or_default();
        let index = fragment.find("index").and_then(|raw| raw.get().parse().ok());
        let function = fragment.find("function").and_then(Object::of).unwrap_or(Object(Vec::new()));
        let name = function.text("name").unwrap_or_default();
        let known = self.belongs(index, &id, &name);
        if known.is_none_or(|at| at + 1 != self.calls.len()) {
            self.settle(hidden);
        }
        let at = known.unwrap_or(self.calls.len());
        if known.is_none() {
            self.calls.push(Called { index, ..Called::default() });
        }
        if let Some(call) = self.calls.get_mut(at) {
            call.take(fragment, &function, &id, &name);
            call.judge(hidden, known.is_some() && (name.is_empty() || name == call.name));
        }
        (at, known.is_none())
    }

    /// Takes a call that is whole.
    pub(super) fn call(&mut self, call: &Object<'_>) {
        let function = call.find("function").and_then(Object::of).unwrap_or(Object(Vec::new()));
        let (id, name) = (call.text("id").unwrap_or_default(), function.text("name").unwrap_or_default());
        let mut called = Called::default();
        called.take(call, &function, &id, &name);
        self.calls.push(called);
    }

    /// The call that a fragment continues. Without an index (Gemini's compatible endpoint sends one whole call a frame)
    /// it is told by its id, without either by what the last call still lacks.
    fn belongs(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let named = |wanted: &Called| !name.is_empty() && !id.is_empty() && !wanted.id.is_empty() && wanted.id != id;
        if index.is_some() {
            // Some servers number every call 0: another id with a name is another call.
            return self
                .calls
                .iter()
                .rposition(|call| call.index == index)
                .filter(|at| self.calls.get(*at).is_some_and(|call| !named(call)));
        }
        if !id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == id);
        }
        let last = self.calls.last()?;
        let complete = serde_json::from_str::<serde::de::IgnoredAny>(&text::decoded(&last.arguments)).is_ok();
        let another = !name.is_empty() && !last.name.is_empty() && (complete || name != last.name);
        (!another).then(|| self.calls.len() - 1)
    }

    /// No call grows any more: whoever is not known yet is known now.
    pub(super) fn settle(&mut self, hidden: &Hidden) {
        for call in &mut self.calls {
            if call.whose == Whose::Unknown {
                call.whose = hidden.whose(&call.name);
            }
            if call.whose == Whose::Wrapped {
                call.native = hidden.unwrapped(&text::decoded(&call.arguments));
                call.whose = if call.native.is_some() { Whose::Agents } else { Whose::Ours };
            }
        }
    }

    /// Is there anything that the client must see otherwise than it came?
    pub(super) fn altered(&self) -> bool {
        self.searched() || self.calls.iter().any(|call| call.native.is_some())
    }

    pub(super) fn searched(&self) -> bool {
        self.calls.iter().any(|call| call.whose == Whose::Ours)
    }

    /// The agent's first call.
    pub(super) fn first_own(&self) -> Option<usize> {
        self.calls.iter().position(|call| call.whose == Whose::Agents)
    }

    /// The signature that only a hidden call carries, for the first call that stays: the client echoes it there, and
    /// its provider finds the step signed.
    pub(super) fn moved_signature(&self) -> Option<&str> {
        let own = self.first_own()?;
        if self.calls.get(own)?.extra("extra_content").is_some() {
            return None;
        }
        self.calls.get(..own)?.iter().find_map(|call| call.extra("extra_content"))
    }

    /// `finish_reason` as the client may see it: where every call was hidden there is none to wait for.
    pub(super) fn shown_finish(&self) -> Option<&'static str> {
        let hidden = self.searched() && self.first_own().is_none();
        (hidden && self.finish.as_deref() == Some("tool_calls")).then_some("stop")
    }

    /// Gives ids to searches that came without: an answer must name one. `count` goes on over the reply.
    pub(super) fn name_searches(&mut self, count: &mut usize) {
        for call in self.calls.iter_mut().filter(|call| call.whose == Whose::Ours && call.id.is_empty()) {
            call.id = format!("call_{}_{count}", call.name);
            *count += 1;
        }
    }

    pub(super) fn own_calls(&self) -> Vec<Call> {
        let own = self.calls.iter().filter(|call| call.whose == Whose::Agents);
        own.map(|call| {
            let id = call.id.clone();
            match call.native.clone() {
                Some(Native { name, arguments }) => Call { id, name, arguments },
                None => Call { id, name: call.name.clone(), arguments: text::decoded(&call.arguments).into_owned() },
            }
        })
        .collect()
    }

    pub(super) fn leg(&self, hidden: &Hidden) -> Leg {
        let ours = self.calls.iter().filter(|call| call.whose == Whose::Ours);
        let misled = ours.clone().enumerate().filter(|(_, call)| !hidden.searches(&call.name));
        Leg {
            complete: self.finish.is_some(),
            failed: self.failed,
            finish: self.finish.clone(),
            searches: ours
                .map(|call| Search { id: call.id.clone(), query: query(&text::decoded(&call.arguments)) })
                .collect(),
            misled: misled.map(|(at, _)| at).collect(),
            calls: self.own_calls(),
            spoke: !self.shown_content.is_empty(),
            withheld: false,
            usage: self.usage.normalised(),
        }
    }

    pub(super) fn exchange(&self, answers: Vec<Answer>, found: Vec<String>) -> Exchange {
        let mut said = String::from(r#"{"role":"assistant""#);
        // Beside calls, providers take no content but not an empty one.
        if !self.content.is_empty() {
            said.push_str(&format!(r#","content":"{}""#, self.content));
        }
        if let Some((key, reasoning)) = &self.reasoning {
            said.push_str(&format!(r#","{key}":"{reasoning}""#));
        }
        if let Some(extra) = &self.extra {
            said.push_str(&format!(r#","extra_content":{extra}"#));
        }
        let calls: Vec<String> = self.calls.iter().map(Called::json).collect();
        said.push_str(&format!(r#","tool_calls":[{}]}}"#, calls.join(",")));
        Exchange {
            said,
            answers,
            text: text::decoded(&self.shown_content).into_owned(),
            reasoning: text::decoded(&self.shown_reasoning).into_owned(),
            mixed: self.first_own().is_some(),
            found,
        }
    }
}

impl Called {
    fn take(&mut self, fragment: &Object<'_>, function: &Object<'_>, id: &str, name: &str) {
        if self.id.is_empty() {
            id.clone_into(&mut self.id);
        }
        if let Some(kind) = fragment.text("type").filter(|kind| !kind.is_empty()) {
            self.kind = kind.into_owned();
        }
        // A name may come in pieces, or again with every piece of the arguments.
        if name != self.name && self.arguments.is_empty() {
            self.name.push_str(name);
        }
        if let Some(raw) = function.find("arguments").filter(|raw| !json::is_null(raw)) {
            match text::inner(raw) {
                Some(spelling) => self.arguments.push_str(spelling),
                None => self.arguments.push_str(json::quoted(raw.get()).trim_matches('"')),
            }
        }
        keep(&mut self.extras, fragment, &["index", "id", "type", "function"]);
        keep(&mut self.function_extras, function, &["name", "arguments"]);
    }

    /// Whose is it, as far as its name tells? `named`: this fragment brought nothing new to the name.
    fn judge(&mut self, hidden: &Hidden, named: bool) {
        if self.whose != Whose::Unknown {
            return;
        }
        if !hidden.may_start(&self.name) {
            self.whose = Whose::Agents;
        } else if !self.name.is_empty() && (named || !self.arguments.is_empty()) {
            self.whose = hidden.whose(&self.name);
        }
    }

    fn extra(&self, key: &str) -> Option<&str> {
        self.extras.iter().find(|(name, _)| name == key).map(|(_, raw)| raw.as_str())
    }

    /// The call as the provider must see it again.
    fn json(&self) -> String {
        let broken = self.whose == Whose::Ours && Object::parse(&text::decoded(&self.arguments)).is_none();
        let arguments = if broken { "{}" } else { &self.arguments };
        let kind = if self.kind.is_empty() { "function" } else { &self.kind };
        let mut out = String::from("{");
        if !self.id.is_empty() {
            out.push_str(&format!(r#""id":{},"#, json::quoted(&self.id)));
        }
        let name = json::quoted(&self.name);
        out.push_str(&format!(r#""type":{},"function":{{"name":{name},"arguments":"{arguments}""#, json::quoted(kind)));
        for (key, raw) in &self.function_extras {
            out.push_str(&format!(",{}:{raw}", json::quoted(key)));
        }
        out.push('}');
        for (key, raw) in &self.extras {
            out.push_str(&format!(",{}:{raw}", json::quoted(key)));
        }
        out.push('}');
        out
    }
}

/// Keeps the members of `object` that are not `known`; a later fragment's value counts.
fn keep(extras: &mut Vec<(String, String)>, object: &Object<'_>, known: &[&str]) {
    let unknown = object.0.iter().filter(|(key, raw)| !known.contains(&&**key) && !json::is_null(raw));
    for (key, raw) in unknown {
        let value = raw.get().to_owned();
        match extras.iter_mut().find(|(name, _)| name == key) {
            Some((_, own)) => *own = value,
            None => extras.push((key.clone().into_owned(), value)),
        }
    }
}
