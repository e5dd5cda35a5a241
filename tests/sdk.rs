//! Real SDK clients through the sidecar: openai, google-genai and anthropic in Python and
//! in Node, streamed and not; and openai against Gemini's compatible endpoint.
//! The clients (tests/sdk/) assert what they see, this file what the provider saw.
//! NOT every behaviour (find_tools.rs): whether SDKs accept what Packlight makes.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::model;
use support::provider::Provider;
use support::reply::{Part, Reply};
use support::roster;
use support::sidecar::Sidecar;

#[test]
fn openai_python() {
    check(&python(), "python/openai_client.py", "kimi", 2);
}

#[test]
fn openai_python_against_gemini() {
    check(&python(), "python/openai_client.py", "compat", 2);
}

#[test]
fn genai_python() {
    check(&python(), "python/genai_client.py", "gemini", 2);
}

#[test]
fn openai_node() {
    check(&node(), "node/openai_client.js", "kimi", 3);
}

#[test]
fn openai_node_against_gemini() {
    check(&node(), "node/openai_client.js", "compat", 2);
}

#[test]
fn genai_node() {
    check(&node(), "node/genai_client.js", "gemini", 2);
}

#[test]
fn anthropic_python() {
    check(&python(), "python/anthropic_client.py", "anthropic", 2);
}

#[test]
fn anthropic_node() {
    check(&node(), "node/anthropic_client.js", "anthropic", 2);
}

/// Runs a client that holds so many conversations, and checks what reached the provider.
fn check(runtime: &Path, script: &str, style: &str, conversations: usize) {
    let provider = match style {
        "anthropic" => Provider::new().answer(|request| thoughtful(model::wants(request))).start(),
        "compat" => Provider::new().answer(model::wants).signatures().start(),
        _ => Provider::new().answer(model::wants).start(),
    };
    let sidecar = Sidecar::over(&provider).set("narrow.max_retrieved_tools", "3").start();
    let (base, name, tools) = match style {
        "kimi" => (sidecar.base("kimi/v1"), "kimi-k2.6", roster::openai()),
        "compat" => (sidecar.base("gemini/v1beta/openai"), "gemini-3-pro", roster::openai()),
        "anthropic" => (sidecar.base("kimi/anthropic"), "kimi-k3", roster::anthropic()),
        _ => (sidecar.base("gemini"), "gemini-3-pro", roster::gemini()),
    };
    let file = folder().join(script);
    let output = Command::new(runtime)
        .arg(&file)
        .env_clear()
        .envs(std::env::vars().filter(|(key, _)| !key.to_ascii_lowercase().ends_with("_proxy")))
        .env("BASE_URL", base)
        .env("MODEL", name)
        .env("STYLE", style)
        .env("TOOLS", tools.to_string())
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .unwrap_or_else(|error| panic!("{script} does not run ({error}): `make sdk` installs the clients"));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    provider.assert_no_refusal();
    assert!(output.status.success(), "{script} failed:\n{said}");

    // Per conversation: search, call, result; then call, result.
    let chats = provider.chats();
    assert_eq!(chats.len(), 5 * conversations, "{script}: {said}");
    for conversation in chats.chunks(5) {
        let bound = conversation[0].tools();
        assert_eq!(bound.len(), 4, "three and find_tools: {bound:?}");
        assert!(bound.contains(&"get_weather".into()) && bound.contains(&"find_tools".into()), "{bound:?}");
        assert!(conversation[1].declares("lock_door"), "found tools are bound on the next leg");
        assert!(conversation[1].text().contains("find_tools"), "the second leg shows the search and its answer");
        assert!(conversation[2].declares("lock_door"), "a called tool stays bound");
        assert!(conversation[3].declares("set_alarm"), "the second turn retrieves its own");
        assert!(conversation.iter().all(|leg| leg.tools().len() < roster::TOOLS.len()), "narrowed throughout");
    }
    let metrics = sidecar.metrics();
    let requests = 4.0 * conversations as f64;
    assert_eq!(metrics.value("packlight_requests_total", &[("action", "narrowed")]), requests, "{script}");
    assert_eq!(metrics.value("packlight_find_tools_total", &[("outcome", "found")]), conversations as f64);
}

/// The same after some thinking.
fn thoughtful(mut reply: Reply) -> Reply {
    reply.parts.insert(0, Part::Reasoning("Which tool? Größe…".into()));
    reply
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

fn python() -> PathBuf {
    let path = folder().join("python/.venv/bin/python");
    assert!(path.exists(), "the Python SDKs are not installed: run `make sdk`");
    path
}

fn node() -> PathBuf {
    assert!(
        folder().join("node/node_modules/@anthropic-ai/sdk").exists(),
        "the Node SDKs are not installed: run `make sdk`"
    );
    "node".into()
}
