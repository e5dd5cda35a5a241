//! Did it go as claimed? Judged by what the model was sent and what the agent received, not by what the sidecar says of
//! itself. Pure. NOT how it is shown.

use std::collections::BTreeSet;

use super::agent::Exchange;
use super::provider::Received;
use super::scenes::{Scene, Way};
use super::script::{Act, FIND_TOOLS};

/// A scene that has been played.
#[derive(Debug)]
pub struct Played {
    pub scene: &'static Scene,
    pub requests: Vec<Asked>,
}

/// One request of the agent and the calls of the model it took.
#[derive(Debug)]
pub struct Asked {
    pub exchange: Exchange,
    pub legs: Vec<Received>,
}

/// The agent's tools, and which of them are never withheld.
#[derive(Debug)]
pub struct Roster<'a> {
    /// Name and bytes, in order.
    pub tools: Vec<(String, &'a str)>,
    pub core: BTreeSet<String>,
}

impl Played {
    /// Puts each call of the model to the request it was made for.
    pub fn new(scene: &'static Scene, exchanges: Vec<Exchange>, mut received: Vec<Received>) -> Self {
        let mut requests: Vec<Asked> = Vec::new();
        for exchange in exchanges.into_iter().rev() {
            let first = received.partition_point(|leg| leg.at < exchange.sent_at);
            let legs = received.split_off(first);
            requests.push(Asked { exchange, legs });
        }
        requests.reverse();
        Self { scene, requests }
    }

    pub fn legs(&self) -> impl Iterator<Item = &Received> {
        self.requests.iter().flat_map(|asked| &asked.legs)
    }

    /// Tools the model saw first, without `find_tools`.
    pub fn bound(&self) -> Vec<&str> {
        self.legs().next().map(Received::names).unwrap_or_default()
    }

    /// Tools it saw later on only, without `find_tools`.
    pub fn added(&self) -> Vec<&str> {
        let first: BTreeSet<_> = self.bound().into_iter().collect();
        let mut added: Vec<&str> = Vec::new();
        for name in self.legs().flat_map(Received::names) {
            if !first.contains(name) && !added.contains(&name) {
                added.push(name);
            }
        }
        added
    }
}

impl Received {
    /// Declared names, without `find_tools`.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|(name, _)| name.as_str()).filter(|name| *name != FIND_TOOLS).collect()
    }
}

/// What does not hold, each as a sentence; empty: all went as claimed.
pub fn complaints(played: &Played, roster: &Roster<'_>) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut claim = |holds: bool, otherwise: &str| {
        let complaint = format!("{}: {otherwise}", played.scene.title);
        if !holds && !complaints.contains(&complaint) {
            complaints.push(complaint);
        }
    };
    for asked in &played.requests {
        let Exchange { tokens, raw, reply, .. } = &asked.exchange;
        claim(!asked.legs.is_empty(), "a request did not reach the model");
        let reason = asked.exchange.verdict("reason");
        claim(reason.is_empty(), &format!("the sidecar sent it in full ({reason})"));
        claim(
            asked.legs.iter().all(|leg| leg.tokens < *tokens),
            "the model was sent no fewer tokens than the agent sent",
        );
        claim(!contains(raw, FIND_TOOLS), "the agent saw find_tools");
        let spent: usize = asked.legs.iter().map(|leg| leg.tokens).sum();
        claim(reply.prompt_tokens == spent, "the usage is not the sum of the model's calls");
    }
    for leg in played.legs() {
        let names = leg.names();
        claim(roster.core.iter().all(|core| names.contains(&core.as_str())), "a tool of the core was withheld");
        let is_own = |(name, raw): &(String, String)| {
            name == FIND_TOOLS || roster.tools.iter().any(|(own, bytes)| own == name && bytes == raw)
        };
        claim(leg.tools.iter().all(is_own), "a tool reached the model changed");
    }
    judge_steps(played, &mut claim);
    complaints
}

fn judge_steps(played: &Played, claim: &mut impl FnMut(bool, &str)) {
    let calls: Vec<_> = played.requests.iter().flat_map(|asked| &asked.exchange.reply.calls).collect();
    let calls: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    let wanted: Vec<_> = played.scene.steps.iter().map(|step| (step.tool, step.arguments)).collect();
    claim(calls == wanted, "the agent did not receive the calls of the scene");
    let said = played.requests.last().map(|asked| asked.exchange.reply.text.as_str());
    claim(said == Some(played.scene.farewell), "the agent did not receive the model's last words");
    let bound = played.bound();
    let searches = played.legs().filter(|leg| matches!(&leg.act, Act::Call { tool, .. } if tool == FIND_TOOLS)).count();
    let needed = played.scene.steps.iter().filter(|step| step.way == Way::Discovered).count();
    claim(searches == needed, "the model searched more or less often than it should need to");
    for step in played.scene.steps {
        match step.way {
            Way::Selected => claim(bound.contains(&step.tool), "the tool that the message asks for was not bound"),
            Way::Discovered => {
                claim(!bound.contains(&step.tool), "the tool to be found was bound already, so nothing was shown");
                claim(played.added().contains(&step.tool), "find_tools did not find the tool");
            }
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bytes::Bytes;

    use super::super::agent::{Call, Reply};
    use super::super::scenes::SCENES;
    use super::*;

    const NEEDED: &str = r#"{"name":"reassign_task"}"#;
    const WHO: &str = r#"{"name":"get_current_user"}"#;

    fn roster() -> Roster<'static> {
        let tools = vec![("get_current_user".to_owned(), WHO), ("reassign_task".to_owned(), NEEDED)];
        Roster { tools, core: BTreeSet::from(["get_current_user".to_owned()]) }
    }

    /// The first scene as it should go: a call, then the last words.
    fn as_claimed() -> Played {
        let (scene, start) = (&SCENES[0], Instant::now());
        let call = Call {
            id: "a".to_owned(),
            name: "reassign_task".to_owned(),
            arguments: scene.steps[0].arguments.to_owned(),
        };
        let exchange = |after: u64, reply: Reply| Exchange {
            sent_at: start + Duration::from_secs(after),
            tokens: 100,
            verdict: String::new(),
            raw: Bytes::from("data: [DONE]\n\n"),
            reply,
        };
        let reply = |text: &str, calls: Vec<Call>| Reply {
            text: text.to_owned(),
            calls,
            prompt_tokens: 40,
            ..Reply::default()
        };
        let leg = |after: u64, act: Act| Received {
            at: start + Duration::from_secs(after),
            tools: vec![
                ("get_current_user".to_owned(), WHO.to_owned()),
                ("reassign_task".to_owned(), NEEDED.to_owned()),
            ],
            tokens: 40,
            act,
        };
        let called = Act::Call { tool: "reassign_task".to_owned(), arguments: scene.steps[0].arguments.to_owned() };
        Played::new(
            scene,
            vec![exchange(0, reply("", vec![call])), exchange(10, reply(scene.farewell, vec![]))],
            vec![leg(1, called), leg(11, Act::Say(scene.farewell.to_owned()))],
        )
    }

    #[test]
    fn nothing_to_complain_of_when_all_went_as_claimed() {
        let played = as_claimed();
        assert!(played.requests.iter().all(|asked| asked.legs.len() == 1));
        assert_eq!(complaints(&played, &roster()), Vec::<String>::new());
    }

    #[test]
    fn each_broken_promise_is_noticed() {
        type Breach = fn(&mut Played);
        let breaches: [(&str, Breach); 8] = [
            ("no fewer tokens", |played| played.requests[0].legs[0].tokens = 100),
            ("saw find_tools", |played| played.requests[0].exchange.raw = Bytes::from("x find_tools x")),
            ("not the sum", |played| played.requests[1].exchange.reply.prompt_tokens = 41),
            ("core was withheld", |played| drop(played.requests[1].legs[0].tools.remove(0))),
            ("reached the model changed", |played| played.requests[0].legs[0].tools[1].1.push(' ')),
            ("did not receive the calls", |played| played.requests[0].exchange.reply.calls.clear()),
            ("last words", |played| played.requests[1].exchange.reply.text.clear()),
            ("was not bound", |played| drop(played.requests[0].legs[0].tools.remove(1))),
        ];
        for (complaint, breach) in breaches {
            let mut played = as_claimed();
            breach(&mut played);
            let found = complaints(&played, &roster());
            assert!(found.iter().any(|text| text.contains(complaint)), "{complaint}: {found:?}");
        }
    }
}
