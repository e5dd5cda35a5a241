//! Past successes as a prior (`history = true`), over sockets: learnt from calls that were answered without an error,
//! bounded, off unless asked for, and never a reason for a block to change within its turn; shared
//! through a real Redis. A catalog's tiers, too. NOT the store (redis.rs).

mod support;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::eventually;
use support::provider::Provider;
use support::redis::{PATIENT, Server};
use support::reply::Reply;
use support::roster;
use support::sidecar::{Builder, Sidecar};

const KIMI: &str = "/kimi/v1/chat/completions";
/// Two tools fit it equally well.
const OPENS: &str = "Unlocks the garden gate";
const RIVALS: [&str; 2] = ["unlock_gate_a", "unlock_gate_b"];
const WEATHER: &str = "Weather report: temperature, rain forecast.";

struct Talk {
    provider: Arc<Provider>,
    sidecar: Sidecar,
}

impl Talk {
    fn new(history: &str) -> Self {
        let provider = talkative();
        let sidecar = learning(&provider).set("narrow.history", history).start();
        Self { provider, sidecar }
    }

    /// One of several replicas over this Redis, with one provider and one embedder.
    fn shared(server: &Server, provider: &Arc<Provider>) -> Self {
        let sidecar = learning(provider).tail(&store(server)).away().start();
        Self { provider: provider.clone(), sidecar }
    }

    /// What is bound for a conversation of its own, told apart by its number.
    fn bound(&self, number: usize, messages: &[Value]) -> Vec<String> {
        let mut body = roster::ask("x");
        let mut all = vec![json!({"role": "system", "content": format!("You are agent {number}.")})];
        all.extend_from_slice(messages);
        body["messages"] = all.into();
        let tools = body["tools"].as_array_mut().expect("the roster");
        tools.extend(RIVALS.map(|name| roster::function(name, OPENS)));
        let before = self.provider.chats().len();
        let answer = self.sidecar.post(KIMI, &body.to_string());
        assert_eq!((answer.status, answer.packlight("action")), (200, "narrowed".to_owned()), "{}", answer.text());
        self.provider.wait(before + 1).tools()
    }

    /// The rival that is not chosen where nothing has been learnt.
    fn outsider(&self) -> &'static str {
        let bound = self.bound(0, &[says(OPENS)]);
        RIVALS.into_iter().find(|rival| !bound.iter().any(|tool| tool == rival)).expect("only one has room")
    }

    fn called(&self, number: usize, message: &str, tool: &str, answer: &str) -> Vec<String> {
        let call = json!({"id": "c:0", "type": "function", "function": {"name": tool, "arguments": "{}"}});
        let call = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let answer = json!({"role": "tool", "tool_call_id": "c:0", "content": answer});
        self.bound(number, &[says(message), call, answer])
    }

    /// Is the tool bound for a new conversation with this message, sooner or later?
    fn comes(&self, message: &str, tool: &str, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut number = 100;
        while Instant::now() < until {
            number += 1;
            if self.bound(number, &[says(message)]).iter().any(|bound| bound == tool) {
                return true;
            }
        }
        false
    }
}

fn talkative() -> Arc<Provider> {
    Arc::new(Provider::new().answer(|_| Reply::text("done")).start())
}

fn learning(provider: &Provider) -> Builder {
    Sidecar::over(provider)
        .set("narrow.max_retrieved_tools", "1")
        .set("narrow.sticky_need", "1")
        .set("narrow.history", "true")
}

fn store(server: &Server) -> String {
    format!("[store]\nkind = \"redis\"\nurl = \"{}\"\nprefix = \"pl\"\n", server.url())
}

/// Keys of successes in it, those of turns not counted.
fn learnt(server: &Server) -> usize {
    let keys = String::from_utf8_lossy(&server.raw(&[b"KEYS", b"pl:history:*"])).into_owned();
    keys.lines().filter(|line| line.starts_with("pl:history:") && !line.starts_with("pl:history:turn:")).count()
}

fn says(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn a_call_that_succeeded_speaks_for_its_tool_the_next_time() {
    let talk = Talk::new("true");
    let tool = talk.outsider();
    let begun = talk.bound(1, &[says(OPENS)]);
    let called = talk.called(1, OPENS, tool, "ok");
    assert_eq!(called.get(..begun.len()), begun.get(..), "the turn keeps what it selected");
    assert!(talk.comes(OPENS, tool, Duration::from_secs(10)), "{tool}");
    let again = talk.called(1, OPENS, tool, "ok");
    assert_eq!(again.len(), called.len(), "and still does when more has been learnt: {again:?}");
}

#[test]
fn a_call_that_failed_teaches_nothing_and_neither_does_any_unless_asked_for() {
    for (history, answer) in [("true", "Error: no such valve"), ("false", "ok")] {
        let talk = Talk::new(history);
        let tool = talk.outsider();
        talk.called(1, OPENS, tool, answer);
        assert!(!talk.comes(OPENS, tool, Duration::from_millis(300)), "{history} {answer}");
    }
}

#[test]
fn a_wrong_history_cannot_bury_a_clear_match() {
    let talk = Talk::new("true");
    for number in 0..20 {
        talk.called(number, &format!("{WEATHER} {number}"), "lock_door", "ok");
    }
    assert!(!talk.comes(WEATHER, "lock_door", Duration::from_millis(500)));
    assert!(talk.bound(99, &[says(WEATHER)]).contains(&"get_weather".to_owned()));
}

#[test]
fn replicas_share_what_was_learnt_and_what_a_turn_selected() {
    let server = Server::started();
    let provider = talkative();
    let [one, two, three] = [(); 3].map(|()| Talk::shared(&server, &provider));
    let tool = one.outsider();
    let begun = one.bound(1, &[says(OPENS)]);
    let called = two.called(1, OPENS, tool, "ok");
    assert_eq!(called.get(..begun.len()), begun.get(..), "the other replica goes on with the turn");
    succeeds(&two, &server, tool);
    // What a replica has read is used for ten seconds before it is read again.
    for replica in [&three, &two, &one] {
        assert!(replica.comes(OPENS, tool, PATIENT), "{tool}");
    }
    let again = one.called(1, OPENS, tool, "ok");
    assert_eq!(again.len(), called.len(), "a turn keeps what it selected, whoever has learnt what: {again:?}");
}

/// The tool is called until that is learnt: a Redis that is slow for a moment loses a success.
fn succeeds(talk: &Talk, server: &Server, tool: &str) {
    let mut number = 10;
    eventually("it is learnt", || {
        number += 1;
        talk.called(number, OPENS, tool, "ok");
        (learnt(server) == 1).then_some(())
    });
}

/// Store operations on the history that failed.
fn errors(talk: &Talk) -> f64 {
    let metrics = talk.sidecar.metrics();
    ["history_get", "history_put"].map(|op| metrics.value("packlight_store_errors_total", &[("op", op)])).iter().sum()
}

#[test]
fn without_its_redis_a_history_is_a_counted_miss_and_no_request_fails() {
    let mut server = Server::started();
    let provider = talkative();
    let talk = Talk::shared(&server, &provider);
    let tool = talk.outsider();
    succeeds(&talk, &server, tool);
    server.signal("-STOP");
    let frozen = Talk::shared(&server, &provider);
    let bound = frozen.bound(2, &[says(OPENS)]);
    assert!(!bound.iter().any(|name| name == tool), "nothing is known: {bound:?}");
    frozen.called(2, OPENS, tool, "ok");
    eventually("misses are counted", || (errors(&frozen) > 0.0).then_some(()));
    server.signal("-CONT");
    assert!(frozen.comes(OPENS, tool, PATIENT), "it is found again");
    server.kill();
    let before = errors(&frozen);
    for number in 3..6 {
        assert!(frozen.bound(number, &[says(WEATHER)]).contains(&"get_weather".to_owned()));
    }
    eventually("misses are counted", || (errors(&frozen) > before).then_some(()));
}

#[test]
fn a_cleared_history_is_gone_for_every_replica() {
    let server = Server::started();
    let provider = talkative();
    let talk = Talk::shared(&server, &provider);
    let tool = talk.outsider();
    succeeds(&talk, &server, tool);
    server.raw(&[b"SET", b"pl:other", b"1"]);
    let file = talk.sidecar.folder.path().join("clear.toml");
    std::fs::write(&file, store(&server)).expect("written");
    let clear =
        Command::new(env!("CARGO_BIN_EXE_packlight")).args(["history", "clear", "--config"]).arg(&file).output();
    let clear = clear.expect("the binary runs");
    let said = String::from_utf8_lossy(&clear.stdout).into_owned();
    assert!(
        clear.status.success() && said.ends_with("keys of the history are gone\n") && !said.starts_with('0'),
        "{said}"
    );
    assert_eq!(server.raw(&[b"KEYS", b"pl:history:*"]), b"*0\r\n");
    assert!(!Talk::shared(&server, &provider).comes(OPENS, tool, Duration::from_millis(300)));
    assert_eq!(server.raw(&[b"EXISTS", b"pl:other"]), b":1\r\n");
}

/// A catalog's tiers: the dangerous one stands first in the roster and costs nothing.
#[test]
fn a_danger_tool_never_outranks_a_safe_sibling_and_a_clear_ask_still_finds_it_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let overlay = folder.path().join("catalog.toml");
    let tiers = "[[tool]]\nname = \"unlock_gate_a\"\ntier = \"danger\"\n[[tool]]\nname = \"unlock_gate_b\"\ncost = 9\n\
                 latency_ms = 900\n[[tool]]\nname = \"delete_*\"\ntier = \"danger\"\ncost = 9\nlatency_ms = 900\n";
    let provider = Provider::new().answer(|_| Reply::text("done")).start();
    let bound = |tiers: &str, message: &str| {
        std::fs::write(&overlay, tiers).expect("written");
        let sidecar =
            learning(&provider).set("narrow.history", "false").set("narrow.catalog", &format!("{overlay:?}")).start();
        let mut body = roster::ask(message);
        let tools = body["tools"].as_array_mut().expect("the roster");
        tools.extend(RIVALS.map(|name| roster::function(name, OPENS)));
        tools.push(roster::function("delete_mailbox", "Deletes the mailbox with all messages for good"));
        tools.push(roster::function("show_mailbox", "Shows the mailbox with all messages"));
        let before = provider.chats().len();
        assert_eq!(sidecar.post(KIMI, &body.to_string()).packlight("action"), "narrowed");
        provider.wait(before + 1).tools()
    };
    let [first, second] = RIVALS.map(str::to_owned);
    assert!(bound("", OPENS).contains(&first), "nothing is said of them: the first in the roster");
    assert!(bound(tiers, OPENS).contains(&second), "however dear and slow");
    let deleted = bound(tiers, "Delete my mailbox for good, with all messages, deletes");
    assert!(deleted.contains(&"delete_mailbox".to_owned()), "{deleted:?}");
    assert!(bound(tiers, "Shows the mailbox").contains(&"show_mailbox".to_owned()));
}
