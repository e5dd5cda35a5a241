//! Makes the request that is sent instead: the declarations of the block, and the hidden exchanges.
//! NOT which tools those are, NOT the words of an answer.
//!
//! Google refuses an empty declarations array, a built-in beside functions that the client did not put there, and a
//! history whose calls and answers do not pair: each has its line here.

use std::ops::Range;

use crate::wire::gemini::dispatch;
use crate::wire::gemini::history;
use crate::wire::json::quoted;
use crate::wire::member;
use crate::wire::request::{FindTools, Rewrite, Slot};
use crate::wire::splice::Edits;
use crate::wire::view::{ChatView, Group, ToolKind};

/// The body that is sent instead; `body` and `view` are of one parse.
pub fn rewrite(body: &str, view: &ChatView<'_>, rewrite: &Rewrite<'_>) -> String {
    let mut edits = Edits::new();
    tools(body, view, rewrite, &mut edits);
    if let Some(dispatch) = rewrite.dispatch {
        dispatch::wrap(body, view, dispatch, &mut edits);
    }
    history::restore(body, view, rewrite.restored, &mut edits);
    history::append(view, rewrite.appended, &mut edits);
    if let (Some(cap), Some((at, _))) = (rewrite.max_tokens, &view.layout.max_tokens) {
        edits.replace(at.clone(), cap.to_string());
    }
    edits.apply(body)
}

/// The declaration of `find_tools`: the same bytes for the same words.
fn declaration(find_tools: &FindTools) -> String {
    const QUERY: &str = "The capability you need, in any language.";
    format!(
        r#"{{"name":{},"description":{},"parameters":{{"type":"OBJECT","properties":{{"query":{{"type":"STRING","description":"{QUERY}"}}}},"required":["query"]}}}}"#,
        quoted(&find_tools.name),
        quoted(&find_tools.description),
    )
}

/// What becomes of one `Tool` object.
enum Fate {
    Kept,
    /// Its declarations array becomes this.
    Declares(String),
    /// Nothing is left to declare, other members stay: this member goes, its comma with it.
    Undeclared(Range<usize>),
    Gone,
}

fn tools(body: &str, view: &ChatView<'_>, rewrite: &Rewrite<'_>, edits: &mut Edits) {
    let groups = &view.layout.groups;
    let Some(last) = groups.iter().rposition(|group| !group.declarations.is_empty()) else {
        return; // no functions of the client's own: a function beside its built-ins would be refused
    };
    let declared = declared(view, rewrite, last);
    let fates: Vec<_> =
        groups.iter().zip(&declared).enumerate().map(|(i, (group, list))| fate(body, view, i, group, list)).collect();
    let gone = fates.iter().filter(|fate| matches!(fate, Fate::Gone)).count();
    if gone == groups.len() {
        return; // no request without any tool: a choice that stands beside would be refused
    }
    if gone == 0 {
        for (group, fate) in groups.iter().zip(fates) {
            apply(group, fate, 0, edits);
        }
        return;
    }
    let mut kept = Vec::new();
    for (group, fate) in groups.iter().zip(fates) {
        let Some(whole) = body.get(group.span.clone()) else { continue };
        if !matches!(fate, Fate::Gone) {
            let mut inner = Edits::new();
            apply(group, fate, group.span.start, &mut inner);
            kept.push(inner.apply(whole));
        }
    }
    edits.replace(view.layout.tools.clone(), format!("[{}]", kept.join(",")));
}

/// Per `Tool` object the texts of its declarations-to-be and, in the same order, which they are.
fn declared<'v>(view: &'v ChatView<'_>, rewrite: &Rewrite<'_>, last: usize) -> Vec<Vec<Declared<'v>>> {
    let mut declared: Vec<Vec<Declared<'v>>> = view.layout.groups.iter().map(|_| Vec::new()).collect();
    let mut found = false;
    for slot in rewrite.block {
        let (group, entry) = match *slot {
            Slot::FindTools => {
                found = true;
                let added = rewrite.find_tools.map(declaration).into_iter();
                let added = added.chain(rewrite.dispatch.map(dispatch::declaration));
                declared.get_mut(last).into_iter().for_each(|list| list.extend(added.clone().map(Declared::FindTools)));
                continue;
            }
            Slot::Roster(index) => {
                let Some(tool) = view.tools.get(index) else { continue };
                if matches!(tool.kind, ToolKind::Fixed | ToolKind::Placed) {
                    continue; // stands in its place, whatever the block says
                }
                (if found { last } else { tool.group }, Declared::Own(index, &tool.text))
            }
        };
        if let Some(list) = declared.get_mut(group) {
            list.push(entry);
        }
    }
    declared
}

enum Declared<'v> {
    Own(usize, &'v str),
    FindTools(String),
}

fn fate(body: &str, view: &ChatView<'_>, index: usize, group: &Group, declared: &[Declared<'_>]) -> Fate {
    if group.declarations.is_empty() {
        return Fate::Kept;
    }
    let of_roster = (0..view.tools.len()).filter(|&i| view.tools.get(i).is_some_and(|tool| tool.group == index));
    let unchanged = of_roster.map(Some).eq(declared.iter().map(|entry| match entry {
        Declared::Own(index, _) => Some(*index),
        Declared::FindTools(_) => None,
    }));
    if unchanged && view.layout.lent.is_none() {
        return Fate::Kept;
    }
    if !declared.is_empty() {
        let texts: Vec<&str> = declared
            .iter()
            .map(|entry| match entry {
                Declared::Own(_, text) => *text,
                Declared::FindTools(text) => text,
            })
            .collect();
        return Fate::Declares(format!("[{}]", texts.join(",")));
    }
    match group.mixed.then(|| member::with_comma(body, &group.declarations)).flatten() {
        Some(range) => Fate::Undeclared(range),
        None => Fate::Gone,
    }
}

/// `base`: where the text that `edits` are for starts in the body.
fn apply(group: &Group, fate: Fate, base: usize, edits: &mut Edits) {
    let within = |range: &Range<usize>| range.start.saturating_sub(base)..range.end.saturating_sub(base);
    match fate {
        Fate::Declares(list) => edits.replace(within(&group.declarations), list),
        Fate::Undeclared(range) => edits.replace(within(&range), ""),
        Fate::Kept | Fate::Gone => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::gemini::view::view;

    const BODY: &str = r#"{ "contents":[{"parts":[{"text":"hi"}]}],
 "tools" : [ {"functionDeclarations": [{"name":"a","x":1e16}, {"name":"b"} ,{"name":"c"}]}, {"googleSearch":{}}, {"url_context":{}, "function_declarations" :[{"name":"d"}]} ],
 "generationConfig":{"maxOutputTokens":100}}"#;

    fn narrowed(body: &str, block: &[Slot], max_tokens: Option<u64>) -> String {
        let seen = view(body, "/models/m:generateContent").expect("a request");
        let find_tools = FindTools { name: "find_tools".to_owned(), description: "Finds \"more\".".to_owned() };
        let wanted = Rewrite { block, find_tools: Some(&find_tools), max_tokens, ..Rewrite::default() };
        let out = rewrite(body, &seen, &wanted);
        assert!(view(&out, "/models/m:generateContent").is_ok(), "{out}");
        out
    }

    fn tools_of(body: &str) -> &str {
        let seen = view(body, "/models/m:generateContent").expect("a request");
        &body[seen.layout.tools]
    }

    use Slot::{FindTools as Find, Roster};
    const FIND: &str = r#"{"name":"find_tools","description":"Finds \"more\".","parameters":{"type":"OBJECT","properties":{"query":{"type":"STRING","description":"The capability you need, in any language."}},"required":["query"]}}"#;

    #[test]
    fn bound_tools_keep_their_bytes_and_additions_stand_at_the_end_of_the_last_list() {
        let out = narrowed(BODY, &[Roster(2), Roster(0), Roster(3), Roster(4), Find, Roster(1)], Some(64));
        let expected = BODY
            .replace(
                r#"[{"name":"a","x":1e16}, {"name":"b"} ,{"name":"c"}]"#,
                r#"[{"name":"c"},{"name":"a","x":1e16}]"#,
            )
            .replace(r#"[{"name":"d"}]"#, &format!(r#"[{{"name":"d"}},{FIND},{{"name":"b"}}]"#))
            .replace("100", "64");
        assert_eq!(out, expected);
    }

    #[test]
    fn the_whole_roster_in_its_order_is_the_same_body() {
        assert_eq!(narrowed(BODY, &[0, 1, 2, 3, 4].map(Roster), None), BODY);
    }

    #[test]
    fn an_emptied_tool_goes_and_a_mixed_one_keeps_its_other_members() {
        let out = narrowed(BODY, &[Roster(0), Roster(3)], None);
        assert!(tools_of(&out).ends_with(r#", {"googleSearch":{}}, {"url_context":{}} ]"#), "{out}");
        let out = narrowed(BODY, &[Roster(3), Roster(4)], None);
        assert_eq!(
            tools_of(&out),
            r#"[{"googleSearch":{}},{"url_context":{}, "function_declarations" :[{"name":"d"}]}]"#
        );
        let out = narrowed(BODY, &[Roster(3)], None);
        assert_eq!(tools_of(&out), r#"[{"googleSearch":{}},{"url_context":{}}]"#);
    }

    #[test]
    fn a_request_with_built_ins_only_gets_no_function() {
        let body = r#"{"contents":[],"tools":[{"googleSearch":{}},{"functionDeclarations":[]}]}"#;
        assert_eq!(narrowed(body, &[Roster(0), Roster(1), Find], None), body);
    }

    #[test]
    fn an_empty_tools_array_is_never_sent() {
        let body = r#"{"tools":[{"functionDeclarations":[{"name":"a"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}"#;
        assert_eq!(narrowed(body, &[], None), body);
    }

    #[test]
    fn one_tool_object_in_place_of_the_list_stays_one() {
        let body = r#"{"tools":{"function_declarations":[{"name":"a"},{"name":"b"}]}}"#;
        let expected = format!(r#"{{"tools":{{"function_declarations":[{{"name":"b"}},{FIND}]}}}}"#);
        assert_eq!(narrowed(body, &[Roster(1), Find], None), expected);
    }
}
