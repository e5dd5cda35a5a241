//! What holds for the request of any format that can be read at all.

use std::sync::Arc;

use crate::wire::Format;
use crate::wire::json::Object;
use crate::wire::known::Known;
use crate::wire::request::{Answer, Exchange, FindTools, Restored, Rewrite, Slot};
use crate::wire::view::{ChatView, Role};

/// Reads `bytes`; if they are a request, rewrites it in several ways and reads what came of it.
pub fn target(format: Format, path: &str, said: &str, bytes: &[u8]) -> bool {
    let Ok(view) = format.view(bytes, path) else { return false };
    let body = std::str::from_utf8(bytes).expect("a view is of text");
    assert!(Object::parse(body).is_some(), "no document: {body}");

    // Tools that are known are what they are when they are read.
    if let Some(known) = Known::of(body, &view).map(Arc::new) {
        let recall = |text: &str| known.begins(text).then(|| known.clone());
        let again = format.view_recalling(body, path, &recall).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert_eq!(format!("{view:?}"), format!("{again:?}"), "{body}");
    }

    let all: Vec<Slot> = (0..view.tools.len()).map(Slot::Roster).collect();
    let find_tools = FindTools { name: "find_tools".into(), description: "\"more\"".into() };
    let with_search: Vec<Slot> = all.iter().copied().chain([Slot::FindTools]).collect();
    let exchange = |text: &str| Exchange {
        said: said.into(),
        answers: vec![Answer { id: "f".into(), name: "find_tools".into(), text: "\"found\"".into() }],
        text: text.into(),
        reasoning: text.into(),
        mixed: false,
        found: Vec::new(),
    };

    // The agent's own block keeps every message, every tool, and can be read again.
    for (block, find_tools) in [(&all, None), (&with_search, Some(&find_tools))] {
        let written = format.rewrite(body, &view, &Rewrite { block, find_tools, ..Rewrite::default() });
        let again = format.view(written.as_bytes(), path).unwrap_or_else(|error| panic!("{error}: {written}"));
        assert_eq!(messages(body, &view), messages(&written, &again), "{written}");
        for tool in &view.tools {
            assert!(written.contains(&*tool.text), "{written}");
        }
    }

    // Hidden exchanges stand before each reply and at the end, and nothing is lost by them.
    let replies = view.messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
    let restored: Vec<Restored> = replies
        .map(|(at, message)| {
            let text: String = message.texts.first().map(|text| text.chars().take(3).collect()).unwrap_or_default();
            Restored { run: at..at + 1, exchanges: vec![exchange(&text)] }
        })
        .collect();
    let appended = [exchange("")];
    let rewrite =
        Rewrite { block: &all, restored: &restored, appended: &appended, max_tokens: Some(7), ..Rewrite::default() };
    let written = format.rewrite(body, &view, &rewrite);
    let again = format.view(written.as_bytes(), path).unwrap_or_else(|error| panic!("{error}: {written}"));
    if !view.messages.is_empty() {
        assert_eq!(again.messages.len(), view.messages.len() + 2 * (restored.len() + 1), "{written}");
    }
    true
}

fn messages<'b>(body: &'b str, view: &ChatView<'_>) -> Vec<&'b str> {
    view.messages.iter().map(|message| &body[message.span.clone()]).collect()
}
