//! `find_tools`: how it is described, what it answers, and when searching is over.
//! NOT the ranking (retrieval), NOT the legs' bytes (wire).

use std::cmp::Ordering;

use super::policy::Binding;
use super::roster::Roster;
use crate::wire::json;
use crate::wire::reply::Leg;
use crate::wire::request::FindTools;

/// What one search came to; the label of `packlight_find_tools_total{outcome}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Found,
    /// No such tool, or none left.
    Nothing,
    /// Its arguments could not be read, or the embedder failed.
    Error,
    /// It was asked when searching was over.
    Exhausted,
}

impl Outcome {
    pub fn label(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Nothing => "nothing",
            Self::Error => "error",
            Self::Exhausted => "exhausted",
        }
    }
}

/// What follows a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The reply ends with it; searches in it are answered for a later request only.
    Deliver,
    /// The same, and it still asked to search though searching was over.
    Exhausted,
    /// Answer, and one more leg.
    Again(Again),
}

/// The leg that follows a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The model may search once more.
    Open,
    /// It may, but is told that searching is over: the block with `find_tools` in it is constant.
    Over,
    /// It is told so, and the leg carries no `find_tools`.
    Last,
    /// The same for one that was told already: it searches no more.
    Dismissed,
}

/// What follows this leg, after `extra` extra legs of at most `most`?
///
/// A leg that was cut by length or filtered is delivered as it is: the provider's reason is the agent's to see.
pub fn next(leg: &Leg, extra: usize, most: usize, binding: Binding) -> Next {
    let ended_well = matches!(
        leg.finish.as_deref(),
        Some("tool_calls" | "stop" | "function_call" | "STOP" | "tool_use" | "end_turn")
    );
    if leg.searches.is_empty() || !leg.calls.is_empty() || leg.failed || !leg.complete || !ended_well {
        return Next::Deliver;
    }
    let constant = match binding {
        Binding::Replace => false,
        Binding::Append | Binding::Dispatch => true,
    };
    match extra.cmp(&most) {
        Ordering::Less if extra + 1 < most => Next::Again(Again::Open),
        Ordering::Less if constant => Next::Again(Again::Over),
        Ordering::Less => Next::Again(Again::Last),
        Ordering::Equal if constant => Next::Again(Again::Dismissed),
        Ordering::Equal | Ordering::Greater => Next::Exhausted,
    }
}

/// The tool as it is declared.
pub fn declaration(name: &str, roster: &Roster) -> FindTools {
    FindTools { name: name.to_owned(), description: description(roster.directory()) }
}

/// Its declaration as the OpenAI wire has it, and the others about: to be counted.
pub fn written(name: &str, directory: &str) -> String {
    let (name, description) = (json::quoted(name), json::quoted(&description(directory)));
    format!(
        r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{{"type":"object","properties":{{"query":{{"type":"string","description":"The capability you need, in any language"}}}},"required":["query"]}}}}}}"#
    )
}

fn description(directory: &str) -> String {
    let space = if directory.is_empty() { "" } else { " " };
    format!(
        "Finds further tools. Only a part of the available tools is listed here; when none of the listed ones does \
         what is needed, call this first: describe the capability you need, in any language. The tools it finds can be \
         called right after.{space}{directory}"
    )
}

const OVER: &str = "Searching is over for this turn: call one of them, or go on with what you have.";
const ONCE_MORE: &str = "Call the one you need. If none fits, search once more in other words.";

/// The answer that names what was found; `over`: no further search in this turn.
pub fn found(roster: &Roster, tools: &[usize], over: bool) -> String {
    let mut text = String::from("These tools can be called now:\n");
    for &tool in tools {
        text.push_str("- ");
        text.push_str(roster.name(tool));
        let summary = roster.summary(tool);
        if !summary.is_empty() {
            text.push_str(": ");
            text.push_str(summary);
        }
        text.push('\n');
    }
    text.push_str(if over { OVER } else { ONCE_MORE });
    text
}

/// The same where what was found is called through `call_tool`. `tools`: each with its description and its parameters.
pub fn described(call_tool: &str, tools: &[(&str, &str, &str)], over: bool) -> String {
    let mut text = format!("These tools can be called now, through {call_tool} with their name and their arguments:\n");
    for (name, description, parameters) in tools {
        text.push_str(&format!("- {name}: {description}\n  parameters: {parameters}\n"));
    }
    text.push_str(if over { OVER } else { ONCE_MORE });
    text
}

/// The answer to a call through `call_tool` that is broken, or names no tool.
pub fn misled(find_tools: &str) -> String {
    format!(
        "No tool was called: give the exact name of a tool that {find_tools} has described, and its arguments as the \
         text of a JSON object. Tools that are listed are called directly."
    )
}

/// The answer when there is no such tool, or none left.
pub fn nothing() -> String {
    "There is no such tool. Tell the user that it cannot be done with the tools at hand; do not search again."
        .to_owned()
}

/// The answer to arguments that cannot be read.
pub fn broken(over: bool) -> String {
    let again = if over { "Searching is over for this turn: go on with what you have." } else { "Try again." };
    format!("The arguments could not be read: give {{\"query\": \"the capability you need, in a few words\"}}. {again}")
}

/// The answer to a search after the last one.
pub fn exhausted() -> String {
    "Searching is over for this turn: go on with the tools at hand, or tell the user that it cannot be done.".to_owned()
}

/// The answer when the search itself failed.
pub fn unavailable() -> String {
    "The search for tools is not available right now: go on with the tools at hand.".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::{Call, Search};

    fn leg(searches: usize, calls: usize, finish: &str) -> Leg {
        let search = Search { id: "1".into(), query: Some("x".into()) };
        let call = Call { id: "2".into(), name: "f".into(), arguments: "{}".into() };
        Leg {
            complete: true,
            finish: Some(finish.into()),
            searches: vec![search; searches],
            calls: vec![call; calls],
            ..Leg::default()
        }
    }

    #[test]
    fn only_a_leg_of_searches_alone_is_followed_by_another() {
        let next = |leg: &Leg, extra, most| next(leg, extra, most, Binding::Replace);
        assert_eq!(next(&leg(1, 0, "tool_calls"), 0, 2), Next::Again(Again::Open));
        assert_eq!(next(&leg(2, 0, "STOP"), 1, 2), Next::Again(Again::Last));
        assert_eq!(next(&leg(1, 0, "stop"), 2, 2), Next::Exhausted);
        assert_eq!(next(&leg(1, 1, "tool_calls"), 0, 2), Next::Deliver, "real calls go to the agent");
        assert_eq!(next(&leg(0, 0, "stop"), 0, 2), Next::Deliver);
        assert_eq!(next(&leg(1, 0, "length"), 0, 2), Next::Deliver, "cut by length");
        let constant = [0, 1, 2, 3].map(|extra| super::next(&leg(1, 0, "stop"), extra, 2, Binding::Append));
        let again = [Again::Open, Again::Over, Again::Dismissed].map(Next::Again);
        assert_eq!(
            (&constant[..3], constant[3]),
            (&again[..], Next::Exhausted),
            "one more where the block is constant"
        );
        assert_eq!(next(&Leg { complete: false, ..leg(1, 0, "stop") }, 0, 2), Next::Deliver, "cut by the network");
    }
}
