//! A generateContent request that can be read can be rewritten and read again, and what is not edited stays.

use packlight_fuzz::wire::Format;
use packlight_fuzz::{run, view};

const SAID: &str = r#"{"role":"model","parts":[{"functionCall":{"id":"f","name":"find_tools","args":{}}}]}"#;

fn main() {
    run::run("gemini_view", &[("gemini", &[".json"])], |bytes| {
        view::target(Format::Gemini, "/v1beta/models/g:streamGenerateContent?alt=sse", SAID, bytes)
    });
}
