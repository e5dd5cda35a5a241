//! A chat completions request that can be read can be rewritten and read again, and what is not edited stays.

use packlight_fuzz::wire::Format;
use packlight_fuzz::{run, view};

const SAID: &str =
    r#"{"role":"assistant","tool_calls":[{"id":"f","function":{"name":"find_tools","arguments":"{}"}}]}"#;

fn main() {
    run::run("openai_view", &[("openai", &[".json"])], |bytes| {
        view::target(Format::OpenAi, "/v1/chat/completions", SAID, bytes)
    });
}
