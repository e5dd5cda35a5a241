//! An agent, Packlight's pure floors and two caching providers in one process: the
//! same conversation narrowed and in full. NOT sockets, NOT retrieval: what a turn
//! selects is said by the test.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use packlight::turn::fold::{self, Block};
use packlight::turn::past::Past;
use packlight::turn::policy::{Binding, Directory, Facts, Order, Policy, Stability};
use packlight::turn::roster::Roster;
use packlight::turn::selection::Selection;
use packlight::turn::transcript::Transcript;
use packlight::turn::{append, memory, search};
use packlight::wire::Format;
use packlight::wire::reply::Call;
use packlight::wire::request::{Answer, Exchange, Place, Rewrite};
use serde_json::{Value, json};

use super::support::cache::{Billed, PromptCache};

const TOOLS: usize = 40;
const PATH: &str = "/v1/chat/completions";

/// What happens next.
#[derive(Debug, Clone)]
pub enum Step {
    /// The model ends its turn and the user writes; retrieval says this of it.
    User { best: Vec<usize>, contentless: bool },
    /// The model calls this tool, bound or not.
    Call(usize),
    /// It searches, alone or beside a call.
    Search { found: Vec<usize>, mixed: bool },
    /// The agent sends its request again.
    Retry,
    /// It goes on from an earlier request of its own.
    Branch(usize),
}

/// One upstream call.
#[derive(Debug)]
pub struct Sent {
    pub narrowed: Billed,
    pub full: Billed,
    /// Prompt tokens of the call that this one goes on from.
    pub parent: u64,
    pub full_parent: u64,
    /// Tokens of what Packlight added since: declarations and hidden exchanges.
    pub grown: u64,
    /// The block is not that of the call that this one goes on from.
    pub changed: bool,
    pub causes: usize,
}

/// A point of the conversation: what the agent has, and what was sent last on the way to it.
#[derive(Debug, Clone, Default)]
struct Point {
    messages: Vec<Value>,
    parent: u64,
    full_parent: u64,
    block: Option<Vec<packlight::wire::request::Slot>>,
    /// Tokens of Packlight's own that were sent on the way.
    ours: u64,
    /// Counted already, not seen in a block yet.
    ahead: usize,
}

pub struct Conversation {
    binding: Binding,
    policy: Policy,
    /// The agent's tools never change.
    roster: Arc<Roster>,
    tools: Value,
    cache: PromptCache,
    full: PromptCache,
    selections: HashMap<String, Selection>,
    stash: Vec<(String, Vec<u8>)>,
    at: Point,
    points: Vec<Point>,
    count: usize,
    clock: Duration,
}

impl Conversation {
    pub fn new(binding: Binding) -> Self {
        let policy = Policy {
            max_retrieved_tools: packlight::retrieval::width::Width::Fixed(6),
            max_discovered_tools: 5,
            max_discovery_legs: 2,
            max_bound_tools: 14,
            sticky_need: 3,
            stability: Stability::Sticky,
            order: Order::Roster,
            directory: Directory::Names,
            find_tools_name: "find_tools".into(),
            query_ignore: Vec::new(),
            max_tools: 128,
        };
        let tools: Value = (0..TOOLS).map(tool).collect();
        let body = json!({"messages": [], "tools": tools}).to_string();
        let view = Format::OpenAi.view(body.as_bytes(), PATH).expect("a request");
        let facts = |name: &str| Facts { core: name == "tool_0", ..Facts::default() };
        let roster = Arc::new(Roster::new(&view.tools, &policy, &facts));
        let mut conversation = Self {
            binding,
            roster,
            tools,
            policy,
            cache: PromptCache::new(Duration::from_secs(300)),
            full: PromptCache::new(Duration::from_secs(300)),
            selections: HashMap::new(),
            stash: Vec::new(),
            at: Point::default(),
            points: Vec::new(),
            count: 0,
            clock: Duration::ZERO,
        };
        conversation.at.messages.push(json!({"role": "system", "content": "You are helpful. ".repeat(100)}));
        conversation.user(&[0, 1, 2], false);
        conversation
    }

    /// Sends what this step sends.
    pub fn step(&mut self, step: &Step) -> Vec<Sent> {
        self.clock += Duration::from_secs(1);
        self.count += 1;
        match step {
            Step::Retry => vec![self.send().0],
            Step::Branch(back) => {
                if let Some(point) = self.points.iter().rev().nth(*back) {
                    self.at = point.clone();
                }
                Vec::new()
            }
            Step::User { best, contentless } => {
                let (sent, _) = self.send();
                self.reply("Well.", None);
                self.user(best, *contentless);
                vec![sent]
            }
            Step::Call(tool) => {
                let (sent, _) = self.send();
                self.reply("", Some(*tool));
                vec![sent]
            }
            Step::Search { found, mixed } => self.search(found, *mixed),
        }
    }

    /// The body that would be sent now.
    pub fn body(&self) -> String {
        let body = self.own();
        let view = Format::OpenAi.view(body.as_bytes(), PATH).expect("a request");
        self.with_block(&body, |block, roster, restored| self.rewritten(&body, &view, block, roster, restored, &[]))
    }

    /// The same transcript and memory in a process that has never seen it.
    pub fn replica(&self) -> Self {
        let mut other = Self::new(self.binding);
        other.selections.clone_from(&self.selections);
        other.stash.clone_from(&self.stash);
        other.at = self.at.clone();
        other
    }

    fn user(&mut self, best: &[usize], contentless: bool) {
        let text = format!("message {} of the user's", self.count);
        let best = best.iter().copied().take(6).collect();
        let selection = Selection { best, contentless, ..Selection::default() };
        self.selections.insert(text.clone(), selection);
        self.at.messages.push(json!({"role": "user", "content": text}));
    }

    /// The model's reply as the agent sees it, and the agent's answer to its call.
    fn reply(&mut self, text: &str, call: Option<usize>) {
        let Some(tool) = call else {
            return self.at.messages.push(json!({"role": "assistant", "content": text}));
        };
        let call = self.call(tool);
        let function = json!({"name": call.name, "arguments": call.arguments});
        let call = json!({"id": call.id, "type": "function", "function": function});
        self.at.messages.push(json!({"role": "assistant", "tool_calls": [call.clone()]}));
        let content = "a result of some length ".repeat(20);
        self.at.messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
    }

    fn call(&self, tool: usize) -> Call {
        Call { id: format!("t{tool}:{}", self.count), name: format!("tool_{tool}"), arguments: "{}".into() }
    }

    /// Sends what the agent has now.
    fn send(&mut self) -> (Sent, Block) {
        let body = self.own();
        let view = Format::OpenAi.view(body.as_bytes(), PATH).expect("a request");
        let (written, block) = self.with_block(&body, |block, roster, restored| {
            (self.rewritten(&body, &view, block, roster, restored, &[]), block.clone())
        });
        let full = self.full.take(&serde_json::from_str(&body).expect("JSON"), self.clock);
        let causes = usize::from(block.cause.is_some());
        let sent = self.bill(&written, full, &block, causes);
        self.at.full_parent = full.prompt;
        self.points.push(self.at.clone());
        (sent, block)
    }

    fn search(&mut self, found: &[usize], mixed: bool) -> Vec<Sent> {
        let (first, mut block) = self.send();
        let mut all = vec![first];
        let body = self.own();
        let view = Format::OpenAi.view(body.as_bytes(), PATH).expect("a request");
        let roster = self.roster.clone();
        let tools = found.iter().copied().filter(|tool| !block.contains(*tool)).collect::<BTreeSet<_>>();
        let new = block.declare(&roster, Place::Appended(0), tools);
        let own = self.call(found[0]);
        let hidden = json!({"id": format!("f:{}", self.count), "type": "function",
            "function": {"name": "find_tools", "arguments": "{\"query\":\"x\"}"}});
        let visible = json!({"id": own.id, "type": "function", "function": {"name": own.name, "arguments": "{}"}});
        let calls = if mixed { json!([hidden, visible]) } else { json!([hidden]) };
        let exchange = Exchange {
            said: json!({"role": "assistant", "tool_calls": calls}).to_string(),
            answers: vec![Answer {
                id: format!("f:{}", self.count),
                name: "find_tools".into(),
                text: search::found(&roster, &new, false),
            }],
            text: String::new(),
            reasoning: String::new(),
            mixed,
            found: new.iter().map(|tool| roster.name(*tool).to_owned()).collect(),
        };
        let digest = memory::digest(&view, &body, "", std::slice::from_ref(&own));
        let kept = memory::written(std::slice::from_ref(&exchange)).expect("short");
        let causes = usize::from(!new.is_empty());
        if mixed {
            self.at.ahead += causes;
        } else {
            let restored = memory::recall(memory::places(&view, &body), &self.stash);
            let written = self.rewritten(&body, &view, &block, &roster, &restored, &[exchange]);
            let full = Billed { prompt: self.at.full_parent, cached: self.at.full_parent };
            all.push(self.bill(&written, full, &block, causes));
        }
        self.stash.push((digest, kept));
        self.reply("", Some(found[0]));
        all
    }

    /// The narrowed provider takes it.
    fn bill(&mut self, written: &str, full: Billed, block: &Block, causes: usize) -> Sent {
        let json: Value = serde_json::from_str(written).expect("JSON");
        let narrowed = self.cache.take(&json, self.clock);
        let slots = block.slots();
        let changed = self.at.block.as_ref() != Some(&slots);
        let own = json["messages"].as_array().expect("messages");
        let ours = own.iter().filter(|message| !self.at.messages.contains(message));
        let ours: u64 = ours.map(|message| message.to_string().len() as u64 / 4 + 1).sum();
        let sent = Sent {
            narrowed,
            full,
            parent: self.at.parent,
            full_parent: self.at.full_parent,
            grown: ours.saturating_sub(self.at.ours),
            changed,
            causes: causes + std::mem::take(&mut self.at.ahead),
        };
        (self.at.parent, self.at.block, self.at.ours) = (narrowed.prompt, Some(slots), ours);
        sent
    }

    fn with_block<T>(
        &self,
        body: &str,
        run: impl FnOnce(&Block, &Roster, &[packlight::wire::request::Restored]) -> T,
    ) -> T {
        let view = Format::OpenAi.view(body.as_bytes(), PATH).expect("a request");
        let roster = &self.roster;
        let transcript = Transcript::of(&view, &[]);
        let restored = memory::recall(memory::places(&view, body), &self.stash);
        let expired = BTreeSet::new();
        let past = Past { roster, transcript: &transcript, restored: &restored, expired: &expired };
        let texts = transcript.turns.iter().map(|turn| &turn.utterance.text);
        let selections: Vec<Selection> = texts.map(|text| self.selections[text].clone()).collect();
        let block = match self.binding {
            Binding::Append => append::block(&past, &self.policy, &selections),
            _ => fold::block(&past, &self.policy, &selections),
        };
        run(&block.expect("a turn"), roster, &restored)
    }

    fn rewritten(
        &self,
        body: &str,
        view: &packlight::wire::view::ChatView<'_>,
        block: &Block,
        roster: &Roster,
        restored: &[packlight::wire::request::Restored],
        appended: &[Exchange],
    ) -> String {
        let find_tools = search::declaration("find_tools", roster);
        let slots = block.slots();
        let rewrite = Rewrite {
            block: &slots,
            find_tools: Some(&find_tools),
            declared: block.declared(),
            restored,
            appended,
            ..Rewrite::default()
        };
        Format::OpenAi.rewrite(body, view, &rewrite)
    }

    /// What the agent sends.
    fn own(&self) -> String {
        json!({"model": "kimi-k3", "messages": self.at.messages, "tools": self.tools}).to_string()
    }
}

fn tool(n: usize) -> Value {
    let description = format!("does thing {n}, ").repeat(30);
    let parameters = json!({"type": "object", "properties": {}});
    json!({"type": "function",
        "function": {"name": format!("tool_{n}"), "description": description, "parameters": parameters}})
}
