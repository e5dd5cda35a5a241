//! Makes the chat completions request that is sent instead: the block, the hidden
//! exchanges, the cap. Only edits of spans; every other byte is the agent's. NOT why.

use std::ops::Range;

use serde_json::value::RawValue;

use super::dispatch;
use crate::wire::json::{self, Object};
use crate::wire::request::{Declaration, Exchange, FindTools, Place, Restored, Rewrite, Slot};
use crate::wire::splice::Edits;
use crate::wire::text;
use crate::wire::view::{ChatView, MessageView, ToolKind};

/// Makes the request that is sent instead.
pub fn rewrite(body: &str, view: &ChatView<'_>, rewrite: &Rewrite<'_>) -> String {
    let mut edits = Edits::new();
    block(body, view, rewrite, &mut edits);
    if let Some(dispatch) = rewrite.dispatch {
        dispatch::wrap(body, view, dispatch, &mut edits);
    }
    let declared = Declared { view, all: rewrite.declared };
    for (reply, restored) in rewrite.restored.iter().enumerate() {
        let behind = |exchange| declared.at(Place::Restored { reply, exchange });
        restore(body, &view.messages, restored, &behind, &mut edits);
    }
    declared.insert(&mut edits);
    if let Some(last) = view.messages.last() {
        let exchanges = rewrite.appended.iter().enumerate();
        let exchanges =
            exchanges.map(|(at, exchange)| format!(",{}{}", whole(exchange), declared.at(Place::Appended(at))));
        edits.insert(last.span.end, exchanges.collect::<String>());
    }
    if let (Some(cap), Some((span, _))) = (rewrite.max_tokens, &view.layout.max_tokens) {
        edits.replace(span.clone(), cap.to_string());
    }
    edits.apply(body)
}

/// The block in place of the agent's tools.
fn block(body: &str, view: &ChatView<'_>, rewrite: &Rewrite<'_>, edits: &mut Edits) {
    let tools = view.layout.tools.clone();
    let written = rewrite.block.iter().copied().filter(|slot| *slot != Slot::FindTools || rewrite.find_tools.is_some());
    let own = (0..view.tools.len()).filter(|tool| view.tools.get(*tool).is_some_and(|t| t.kind != ToolKind::Placed));
    let unchanged = view.layout.lent.is_none() && rewrite.dispatch.is_none() && written.eq(own.map(Slot::Roster));
    if tools.is_empty() || unchanged {
        return;
    }
    let mut declarations: Vec<String> = Vec::with_capacity(rewrite.block.len());
    for slot in rewrite.block {
        match slot {
            Slot::Roster(index) => {
                declarations.extend(view.tools.get(*index).map(|tool| tool.text.to_string()));
            }
            Slot::FindTools => {
                declarations.extend(rewrite.find_tools.map(declaration));
                declarations.extend(rewrite.dispatch.map(dispatch::declaration));
            }
        }
    }
    if !declarations.is_empty() {
        edits.replace(tools, format!("[{}]", declarations.join(",")));
    } else if !rewrite.declared.is_empty() || !speaks_of_tools(body) {
        // Servers refuse an empty array, and a choice about tools that are not there.
        edits.replace(member(body, tools), "");
    }
}

/// `find_tools` as an entry of `tools`: same words, same bytes.
fn declaration(find_tools: &FindTools) -> String {
    let name = json::quoted(&find_tools.name);
    let description = json::quoted(&find_tools.description);
    format!(
        r#"{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{{"type":"object","properties":{{"query":{{"type":"string","description":"The capability you need, in any language"}}}},"required":["query"]}}}}}}"#
    )
}

/// Declarations that stand in messages of their own.
struct Declared<'d> {
    view: &'d ChatView<'d>,
    all: &'d [Declaration],
}

impl Declared<'_> {
    /// Those that stand at the agent's own messages.
    fn insert(&self, edits: &mut Edits) {
        let span = |at: usize| self.view.messages.get(at).map(|message| message.span.clone());
        for declaration in self.all {
            let message = self.message(declaration);
            match declaration.place {
                Place::Behind(at) => span(at).into_iter().for_each(|own| edits.insert(own.end, format!(",{message}"))),
                Place::Before(at) => {
                    span(at).into_iter().for_each(|own| edits.insert(own.start, format!("{message},")))
                }
                Place::Restored { .. } | Place::Appended(_) => {}
            }
        }
    }

    /// What stands at this place, with a comma before each message.
    fn at(&self, place: Place) -> String {
        let here = self.all.iter().filter(|declaration| declaration.place == place);
        here.map(|declaration| format!(",{}", self.message(declaration))).collect()
    }

    /// One message: providers refuse content beside tools, some even an empty one.
    fn message(&self, declaration: &Declaration) -> String {
        let tools = declaration.tools.iter().filter_map(|tool| self.view.tools.get(*tool));
        let tools: Vec<&str> = tools.map(|tool| &*tool.text).collect();
        format!(r#"{{"role":"system","tools":[{}]}}"#, tools.join(","))
    }
}

/// Puts hidden exchanges back in front of the reply that they led to, or in its place. `behind`: what is declared
/// behind the exchange of that number.
fn restore(
    body: &str,
    messages: &[MessageView<'_>],
    restored: &Restored,
    behind: &dyn Fn(usize) -> String,
    edits: &mut Edits,
) {
    let run = messages.get(restored.run.clone()).unwrap_or_default();
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
    let numbered = restored.exchanges.iter().enumerate();
    let (mixed, hidden): (Vec<(usize, &Exchange)>, Vec<_>) = numbered.partition(|(_, exchange)| exchange.mixed);
    let before = hidden.iter().map(|(at, exchange)| format!("{}{},", whole(exchange), behind(*at)));
    edits.insert(first.span.start, before.collect::<String>());
    if !mixed.is_empty() {
        let said: Vec<String> = mixed.iter().map(|(_, exchange)| whole(exchange)).collect();
        edits.replace(first.span.start..last.span.end, said.join(","));
        return;
    }
    let shown = |part: fn(&Exchange) -> &str| hidden.iter().map(|(_, exchange)| part(exchange)).collect::<String>();
    unrepeat(body, first, &shown(|exchange| &exchange.text), &shown(|exchange| &exchange.reasoning), edits);
}

/// Takes from the front of the agent's own message what the restored messages in front of it say already.
fn unrepeat(body: &str, message: &MessageView<'_>, shown_text: &str, shown_reasoning: &str, edits: &mut Edits) {
    let Some(object) = body.get(message.span.clone()).and_then(Object::parse) else { return };
    for key in ["reasoning_content", "reasoning"] {
        if let Some(raw) = object.find(key) {
            cut_prefix(body, raw, shown_reasoning, edits);
        }
    }
    let Some(content) = object.find("content").filter(|_| !shown_text.is_empty()) else { return };
    let part = json::elements(content).and_then(|parts| Object::of(parts.first()?)?.find("text"));
    let emptied = cut_prefix(body, part.unwrap_or(content), shown_text, &mut Edits::new());
    if !emptied {
        cut_prefix(body, part.unwrap_or(content), shown_text, edits);
    } else if part.is_none() && !message.calls.is_empty() {
        // Beside calls, providers take no content but not an empty one. Without calls there must be some: it stays.
        edits.replace(member(body, json::span(body, content.get())), "");
    }
}

/// Cuts `prefix` off the front of the string `raw`, if it stands there. Is nothing left of it?
fn cut_prefix(body: &str, raw: &RawValue, prefix: &str, edits: &mut Edits) -> bool {
    let Some((spelling, length)) =
        text::inner(raw).and_then(|spelling| Some((spelling, text::prefix_len(spelling, prefix)?)))
    else {
        return false;
    };
    let start = json::span(body, spelling).start;
    if length > 0 {
        edits.replace(start..start + length, "");
    }
    length == spelling.len()
}

/// The model's message and the answers to its searches.
fn whole(exchange: &Exchange) -> String {
    let mut out = exchange.said.clone();
    for answer in &exchange.answers {
        let (id, text) = (json::quoted(&answer.id), json::quoted(&answer.text));
        out.push_str(&format!(r#",{{"role":"tool","tool_call_id":{id},"content":{text}}}"#));
    }
    out
}

/// Does the body say something that is only allowed beside tools?
fn speaks_of_tools(body: &str) -> bool {
    Object::parse(body).is_none_or(|top| {
        ["tool_choice", "parallel_tool_calls"]
            .into_iter()
            .any(|key| top.find(key).is_some_and(|raw| !json::is_null(raw)))
    })
}

/// What must go for the member with this value to be gone: its key, and a comma beside it.
fn member(body: &str, value: Range<usize>) -> Range<usize> {
    const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];
    let key = body.get(..value.start).and_then(|before| {
        let before = before.trim_end_matches(SPACE).strip_suffix(':')?.trim_end_matches(SPACE);
        before.strip_suffix('"')?.rfind('"')
    });
    let Some(key) = key else { return value };
    let before = body.get(..key).unwrap_or_default().trim_end_matches(SPACE);
    if before.ends_with(',') {
        return before.len() - 1..value.end;
    }
    let after = body.get(value.end..).unwrap_or_default();
    let rest = after.trim_start_matches(SPACE);
    match rest.strip_prefix(',') {
        Some(next) => key..body.len() - next.trim_start_matches(SPACE).len(),
        None => key..value.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::openai::view::view;
    use crate::wire::request::Answer;

    const BODY: &str = r#"{ "model":"kimi-k3", "tools" : [ {"type":"function","function":{"name":"a","parameters":{"n":9007199254740993001}}}, {"type":"function","function":{"name":"b"}} ] , "max_tokens":50,
 "messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"\u4f60 see. Done","reasoning_content":"","tool_calls":[{"id":"a:0","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a:0","content":"1.0"}], "tem":1.0 }"#;

    fn find_tools() -> FindTools {
        FindTools { name: "find_tools".into(), description: "What \"else\"".into() }
    }

    fn exchange(text: &str, mixed: bool) -> Exchange {
        Exchange {
            said: r#"{"role":"assistant","tool_calls":[]}"#.into(),
            answers: vec![Answer { id: "f:0".into(), name: "find_tools".into(), text: "b: \"x\"".into() }],
            text: text.into(),
            reasoning: String::new(),
            mixed,
            found: vec!["b".into()],
        }
    }

    fn rewritten(rewrite: &Rewrite<'_>) -> String {
        let out = super::rewrite(BODY, &view(BODY).expect("view"), rewrite);
        assert!(view(&out).is_ok(), "{out}");
        out
    }

    #[test]
    fn bound_tools_keep_their_bytes_and_nothing_else_moves() {
        let find_tools = find_tools();
        let block = [Slot::Roster(1), Slot::FindTools, Slot::Roster(0)];
        let out = rewritten(&Rewrite {
            block: &block,
            find_tools: Some(&find_tools),
            max_tokens: Some(30),
            ..Rewrite::default()
        });
        let tools = format!(
            r#"[{{"type":"function","function":{{"name":"b"}}}},{},{{"type":"function","function":{{"name":"a","parameters":{{"n":9007199254740993001}}}}}}]"#,
            declaration(&find_tools)
        );
        let view = view(BODY).expect("view");
        let expected = BODY.replace(&BODY[view.layout.tools], &tools).replace("\"max_tokens\":50", "\"max_tokens\":30");
        assert_eq!(out, expected);
    }

    #[test]
    fn the_agents_own_block_is_no_edit() {
        let block = [Slot::Roster(0), Slot::Roster(1)];
        assert_eq!(rewritten(&Rewrite { block: &block, ..Rewrite::default() }), BODY);
    }

    #[test]
    fn no_tools_left_omits_the_key_with_its_comma() {
        let out = rewritten(&Rewrite::default());
        assert!(out.starts_with(r#"{ "model":"kimi-k3" , "max_tokens":50,"#), "{out}");
        let first = r#"{"tools":[{"type":"function","function":{"name":"a"}}] , "messages":[]}"#;
        let empty = Rewrite::default();
        assert_eq!(super::rewrite(first, &view(first).expect("view"), &empty), r#"{"messages":[]}"#);
    }

    #[test]
    fn tool_choice_never_stands_without_tools() {
        let body = r#"{"tools":[{"type":"function","function":{"name":"a"}}],"tool_choice":"auto","messages":[]}"#;
        assert_eq!(super::rewrite(body, &view(body).expect("view"), &Rewrite::default()), body);
    }

    #[test]
    fn hidden_exchanges_return_before_the_reply_and_what_it_repeats_goes() {
        let restored = [Restored { run: 1..2, exchanges: vec![exchange("你 ", false), exchange("see. ", false)] }];
        let block = [Slot::Roster(0), Slot::Roster(1)];
        let out = rewritten(&Rewrite { block: &block, restored: &restored, ..Rewrite::default() });
        let pair = r#"{"role":"assistant","tool_calls":[]},{"role":"tool","tool_call_id":"f:0","content":"b: \"x\""},"#;
        let expected = BODY.replace(
            r#"{"role":"assistant","content":"\u4f60 see. Done""#,
            &format!(r#"{pair}{pair}{{"role":"assistant","content":"Done""#),
        );
        assert_eq!(out, expected);
    }

    #[test]
    fn text_that_was_all_hidden_takes_its_key_along() {
        let restored = [Restored { run: 1..2, exchanges: vec![exchange("你 see. Done", false)] }];
        let out = rewritten(&Rewrite { restored: &restored, ..Rewrite::default() });
        assert!(out.contains(r#"{"role":"assistant","reasoning_content":"","tool_calls":[{"id""#), "{out}");
    }

    #[test]
    fn text_that_does_not_repeat_is_left() {
        let restored = [Restored { run: 1..2, exchanges: vec![exchange("Else", false)] }];
        let out = rewritten(&Rewrite { restored: &restored, ..Rewrite::default() });
        assert!(out.contains(r#"{"role":"assistant","content":"\u4f60 see. Done""#), "{out}");
    }

    #[test]
    fn a_mixed_exchange_stands_in_place_of_the_reply() {
        let restored = [Restored { run: 1..2, exchanges: vec![exchange("x", false), exchange("", true)] }];
        let appended = [exchange("", false)];
        let out = rewritten(&Rewrite { restored: &restored, appended: &appended, ..Rewrite::default() });
        let roles: Vec<_> = view(&out).expect("view").messages.iter().map(|message| message.role).collect();
        use crate::wire::view::Role::{Assistant, Tool, User};
        assert_eq!(roles, [User, Assistant, Tool, Assistant, Tool, Tool, Assistant, Tool]);
        assert!(!out.contains("Done"));
    }
}
