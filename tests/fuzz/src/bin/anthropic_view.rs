//! A Messages request that can be read can be rewritten, mended and read again, and what is not edited stays.

use packlight_fuzz::wire::Format;
use packlight_fuzz::wire::anthropic::marks;
use packlight_fuzz::{run, view};

const SAID: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"f","name":"find_tools","input":{}}]}"#;
const PATH: &str = "/v1/messages";

fn main() {
    run::run("anthropic_view", &[("anthropic", &[".json"])], |bytes| {
        let far = view::target(Format::Anthropic, PATH, SAID, bytes);
        if far {
            let body = std::str::from_utf8(bytes).expect("a view is of text");
            let again =
                |written: &str| Format::Anthropic.view(written.as_bytes(), PATH).map(|view| view.messages.len());
            let messages = again(body).expect("a request");
            if let Some(mended) = Format::Anthropic.mended(body) {
                assert_eq!(again(&mended), Ok(messages), "{mended}");
                assert!(mended.len() < body.len(), "{mended}");
            }
            let view = Format::Anthropic.view(bytes, PATH).expect("a request");
            for message in &view.messages {
                let bare = marks::without(&body[message.span.clone()]);
                assert!(serde_json::from_str::<serde::de::IgnoredAny>(&bare).is_ok(), "{bare}");
            }
        }
        far
    });
}
