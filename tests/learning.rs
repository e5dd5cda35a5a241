//! Past successes as a prior (`history = true`), over sockets: learnt from calls that were answered without an error,
//! bounded, off unless asked for, and never a reason for a block to change within its turn. NOT the store (redis.rs).

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::provider::Provider;
use support::reply::Reply;
use support::roster;
use support::sidecar::Sidecar;

const KIMI: &str = "/kimi/v1/chat/completions";
/// Two tools fit it equally well.
const OPENS: &str = "Unlocks the garden gate";
const RIVALS: [&str; 2] = ["unlock_gate_a", "unlock_gate_b"];
const WEATHER: &str = "Weather report: temperature, rain forecast.";

struct Talk {
    provider: Provider,
    sidecar: Sidecar,
}

impl Talk {
    fn new(history: &str) -> Self {
        let provider = Provider::new().answer(|_| Reply::text("done")).start();
        let sidecar = Sidecar::over(&provider)
            .set("narrow.max_retrieved_tools", "1")
            .set("narrow.sticky_need", "1")
            .set("narrow.history", history)
            .start();
        Self { provider, sidecar }
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
