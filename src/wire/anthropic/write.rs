//! Makes the Messages request that is sent instead: the block and the cap here, hidden
//! exchanges in `history`. Only edits of spans; every other byte is the agent's. NOT why.

use crate::wire::anthropic::{dispatch, history};
use crate::wire::json::quoted;
use crate::wire::request::{FindTools, Rewrite, Slot};
use crate::wire::splice::Edits;
use crate::wire::view::ChatView;

/// Makes the request that is sent instead.
pub fn rewrite(body: &str, view: &ChatView<'_>, rewrite: &Rewrite<'_>) -> String {
    let mut edits = Edits::new();
    block(view, rewrite, &mut edits);
    if let Some(dispatch) = rewrite.dispatch {
        dispatch::wrap(body, view, dispatch, &mut edits);
    }
    for restored in rewrite.restored {
        history::restore(body, &view.messages, restored, &mut edits);
    }
    if let Some(last) = view.messages.last() {
        edits.insert(last.span.end, history::appended(rewrite.appended));
    }
    if let (Some(cap), Some((span, _))) = (rewrite.max_tokens, &view.layout.max_tokens) {
        edits.replace(span.clone(), cap.to_string());
    }
    edits.apply(body)
}

/// The block in place of the agent's tools.
fn block(view: &ChatView<'_>, rewrite: &Rewrite<'_>, edits: &mut Edits) {
    let written = rewrite.block.iter().copied().filter(|slot| *slot != Slot::FindTools || rewrite.find_tools.is_some());
    let unchanged = view.layout.lent.is_none() && rewrite.dispatch.is_none();
    if unchanged && written.eq((0..view.tools.len()).map(Slot::Roster)) {
        return;
    }
    let mut declarations: Vec<String> = Vec::with_capacity(rewrite.block.len() + 1);
    for slot in rewrite.block {
        match slot {
            Slot::Roster(index) => declarations.extend(view.tools.get(*index).map(|tool| tool.text.to_string())),
            Slot::FindTools => {
                declarations.extend(rewrite.find_tools.map(declaration));
                declarations.extend(rewrite.dispatch.map(dispatch::declaration));
            }
        }
    }
    // Tool blocks in the history want tools beside them, and so does a choice: rather all tools than none.
    if !declarations.is_empty() && !view.layout.tools.is_empty() {
        edits.replace(view.layout.tools.clone(), format!("[{}]", declarations.join(",")));
    }
}

/// `find_tools` as an entry of `tools`: same words, same bytes.
fn declaration(find_tools: &FindTools) -> String {
    let (name, description) = (quoted(&find_tools.name), quoted(&find_tools.description));
    format!(
        r#"{{"name":{name},"description":{description},"input_schema":{{"type":"object","properties":{{"query":{{"type":"string","description":"The capability you need, in any language"}}}},"required":["query"]}}}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::anthropic::view::view;

    const BODY: &str = r#"{ "model":"kimi-k3", "tools" : [ {"name":"a","input_schema":{"n":9007199254740993001}}, {"type":"web_search_20250305","name":"web_search"},{"name":"b","input_schema":{}} ] , "max_tokens":50, "messages":[{"role":"user","content":"hi"}], "tem":1.0 }"#;

    #[test]
    fn bound_tools_keep_their_bytes_and_nothing_else_moves() {
        let find_tools = FindTools { name: "find_tools".into(), description: "What \"else\"".into() };
        let block = [Slot::Roster(1), Slot::FindTools, Slot::Roster(0)];
        let rewrite =
            Rewrite { block: &block, find_tools: Some(&find_tools), max_tokens: Some(30), ..Rewrite::default() };
        let out = super::rewrite(BODY, &view(BODY).expect("view"), &rewrite);
        let tools = format!(
            r#"[{{"type":"web_search_20250305","name":"web_search"}},{},{{"name":"a","input_schema":{{"n":9007199254740993001}}}}]"#,
            declaration(&find_tools)
        );
        let seen = view(BODY).expect("view");
        let expected = BODY.replace(&BODY[seen.layout.tools], &tools).replace("\"max_tokens\":50", "\"max_tokens\":30");
        assert_eq!(out, expected);
    }

    #[test]
    fn the_agents_own_block_and_an_empty_one_are_no_edit() {
        let seen = view(BODY).expect("view");
        for block in [&[Slot::Roster(0), Slot::Roster(1), Slot::Roster(2)][..], &[], &[Slot::FindTools]] {
            assert_eq!(super::rewrite(BODY, &seen, &Rewrite { block, ..Rewrite::default() }), BODY);
        }
    }
}
