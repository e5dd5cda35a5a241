//! `call_tool`: how the model calls a tool that is not declared, read back as the
//! agent's own call and written again in the history. A constant declaration, so
//! that a prompt cache holds where tools cannot be declared later. NOT frames, NOT
//! bodies (each adapter knows its own).

use std::collections::HashSet;

use super::json::{self, Object};

/// The tool that calls others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dispatch {
    pub name: String,
    pub description: String,
    /// Names of all functions of the agent's.
    pub known: HashSet<String>,
    /// Those that are declared: calls of them stay what they are.
    pub declared: HashSet<String>,
}

/// A call as the agent knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Native {
    pub name: String,
    /// Text of a JSON object.
    pub arguments: String,
}

impl Native {
    /// As the `function` of an OpenAI call.
    pub fn json(&self) -> String {
        format!(r#"{{"name":{},"arguments":{}}}"#, json::quoted(&self.name), json::quoted(&self.arguments))
    }
}

impl Dispatch {
    /// The JSON schema of its parameters. Text, not a free object: Kimi reads an omitted `strict` as true, and Gemini
    /// refuses an object without properties.
    pub const PARAMETERS: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"The tool's name"},"arguments":{"type":"string","description":"Its arguments: a JSON object, as text"}},"required":["name","arguments"]}"#;

    /// The agent's call in the arguments of one of this tool; `None`: they are broken, or name no tool.
    pub fn unwrapped(&self, arguments: &str) -> Option<Native> {
        let object = Object::parse(arguments.trim())?;
        let name = object.text("name").filter(|name| self.known.contains(name.as_ref()))?.into_owned();
        let arguments = match ["arguments", "args", "parameters"].into_iter().find_map(|key| object.find(key)) {
            None => "{}".to_owned(),
            Some(raw) => match json::string(raw) {
                Some(text) if text.trim().is_empty() => "{}".to_owned(),
                Some(text) => text.into_owned(),
                None => raw.get().to_owned(),
            },
        };
        Object::parse(&arguments)?;
        Some(Native { name, arguments })
    }

    /// Must a call of this tool in the history be written as one of `call_tool`?
    pub fn wraps(&self, name: &str) -> bool {
        self.known.contains(name) && !self.declared.contains(name)
    }

    /// The arguments of such a call: the same bytes for the same call.
    pub fn wrapped(name: &str, arguments: &str) -> String {
        format!(r#"{{"name":{},"arguments":{}}}"#, json::quoted(name), json::quoted(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch() -> Dispatch {
        let known = ["lock", "mail"].map(str::to_owned).into();
        Dispatch { name: "call_tool".into(), known, declared: ["mail".to_owned()].into(), ..Dispatch::default() }
    }

    #[test]
    fn what_is_wrapped_comes_back() {
        for arguments in ["{}", r#"{"n":9007199254740993001,"text":"größe \"x\" \u00e9"}"#, r#"{ "a" : 1.0 }"#] {
            let native = dispatch().unwrapped(&Dispatch::wrapped("lock", arguments)).expect("a call");
            assert_eq!((native.name.as_str(), native.arguments.as_str()), ("lock", arguments));
        }
    }

    #[test]
    fn models_write_arguments_in_several_ways() {
        for (written, arguments) in [
            (r#"{"name":"lock","arguments":{"n":1e16}}"#, r#"{"n":1e16}"#),
            (r#"{"arguments":"","name":"lock"}"#, "{}"),
            (r#"{"name":"lock"}"#, "{}"),
            (r#"{"name":"mail","args":"{\"a\":1}"}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(dispatch().unwrapped(written).map(|n| n.arguments).as_deref(), Some(arguments), "{written}");
        }
    }

    #[test]
    fn what_is_broken_is_no_call() {
        for broken in ["", "{", r#"{"name":"lock","argum"#, r#"{"name":"nothing","arguments":"{}"}"#, "[]"] {
            assert_eq!(dispatch().unwrapped(broken), None, "{broken}");
        }
        for broken in [r#"{"name":"lock","arguments":"{\"a\":"}"#, r#"{"name":"lock","arguments":[1]}"#] {
            assert_eq!(dispatch().unwrapped(broken), None, "{broken}");
        }
    }

    #[test]
    fn declared_tools_are_called_as_they_are() {
        assert!(dispatch().wraps("lock") && !dispatch().wraps("mail") && !dispatch().wraps("unheard"));
    }
}
