//! One narrowed request and the legs it takes: makes each leg's body, answers the
//! model's searches, remembers what was hidden. NOT reading replies (wire), NOT the
//! order of things (reply.rs).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::Incoming;

use super::app::App;
use super::body::{Body, BodyError};
use super::choose::{Chosen, Request};
use super::head::Head;
use super::recall::{self, Remembered};
use super::record::{self, Recorder};
use super::relay;
use super::respond::{self, Trouble};
use super::route::Route;
use super::sent::Sent;
use super::source::{self, Source};
use super::upstream::{SendError, Target};
use crate::outcome::Action;
use crate::store::Op;
use crate::turn::bypass::Bypass;
use crate::turn::fold::{Block, Cause};
use crate::turn::policy::{Asked, Binding, Way};
use crate::turn::transcript::Transcript;
use crate::turn::{dispatch, memory, search};
use crate::wire::dispatch::Dispatch;
use crate::wire::reply::{Call, Framing, Leg, Search};
use crate::wire::request::{Answer, Exchange, FindTools, Place, Rewrite, Slot};
use crate::wire::view::ChatView;
use crate::wire::{Assembler, Format};

/// How long a hidden exchange is remembered after its conversation's last.
const STASH_LIFE: Duration = Duration::from_secs(3600);
/// A later leg's cap on tokens is never lowered below this: a reply needs some.
const SMALLEST_CAP: u64 = 64;

/// A narrowed request, with all that its later legs need.
pub struct Narrowing {
    pub app: Arc<App>,
    pub route: Arc<Route>,
    pub head: Head,
    pub sent: Sent,
    pub asked: Asked,
    pub way: Way,
    pub chosen: Chosen,
    /// `None`: the model may not search (`max_discovery_legs = 0`).
    pub find_tools: Option<FindTools>,
    pub remembered: Remembered,
    /// Hidden exchanges of this request.
    pub appended: Vec<Exchange>,
    /// The key of the conversation's memories.
    pub conversation: String,
    /// A JSON answer is demanded: text of a leg that searches must not be seen.
    pub hold_text: bool,
    /// The agent asks for a stream.
    pub stream: bool,
    /// The provider refused what the agent wrote and took it mended: every leg is.
    pub mends: bool,
}

/// Which leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The model may search.
    Searching,
    /// It may not: `find_tools` is not declared.
    Last,
}

impl Narrowing {
    /// The body of a leg. `view` must be of `self.sent`. `used`: completion tokens of the legs before.
    pub fn rewritten(&self, view: &ChatView<'_>, kind: Kind, used: u64) -> Bytes {
        let find_tools = self.find_tools.as_ref().filter(|_| kind == Kind::Searching);
        // The last leg's top level changes anyway: nothing is declared in its conversation.
        let gathered = kind == Kind::Last;
        let own: &Block = &self.chosen.block;
        let declared = if gathered || self.chosen.binding == Binding::Dispatch { &[] } else { own.declared() };
        let mut block: Vec<Slot> = if gathered { own.gathered() } else { own.slots() };
        if view.layout.lent.is_some() && find_tools.is_none() && declared.is_empty() && own.count() == 0 {
            // Rather all tools than none, which would be none of the agent's bytes.
            block = self.sent.whole(view).map(Slot::Roster).collect();
        }
        let forget = kind == Kind::Last && self.sent.format.last_leg_forgets();
        let cap = view.layout.max_tokens.as_ref().map(|(_, cap)| *cap).filter(|_| used > 0);
        let call_tool = self.call_tool(&block);
        let rewrite = Rewrite {
            block: &block,
            dispatch: call_tool.as_ref(),
            find_tools,
            declared,
            restored: if forget { &[] } else { &self.remembered.restored },
            appended: if forget { &[] } else { &self.appended },
            max_tokens: cap.map(|cap| cap.saturating_sub(used).max(SMALLEST_CAP.min(cap))),
        };
        Bytes::from(self.sent.format.rewrite(self.sent.text(), view, &rewrite))
    }

    /// `call_tool` beside this block; `None`: the binding has none.
    fn call_tool(&self, block: &[Slot]) -> Option<Dispatch> {
        (self.chosen.binding == Binding::Dispatch).then(|| dispatch::call_tool(&self.chosen.roster, block))
    }

    /// What assembles the reply.
    pub fn assembler(&self, framing: Framing) -> Assembler {
        let name = self.find_tools.as_ref().map(|tool| tool.name.as_str()).unwrap_or_default();
        let assembler = Assembler::new(self.sent.format, framing, name, self.hold_text);
        match self.call_tool(&self.chosen.block.slots()) {
            Some(dispatch) => assembler.dispatching(Arc::new(dispatch)),
            None => assembler,
        }
    }

    /// Chooses with another binding; the first leg's body. Costs no embedding: what each turn selects is known.
    pub async fn rebound(&mut self, binding: Binding) -> Option<Bytes> {
        let view = self.sent.view().ok()?;
        let transcript = Transcript::of(&view, &self.route.policy.query_ignore);
        let (chooser, roster) = (&self.app.chooser, self.chosen.roster.clone());
        let remembered = &self.remembered;
        let request = Request { view: &view, transcript: &transcript, asked: &self.asked };
        let chosen = chooser.choose(&self.route, binding, roster, &request, remembered).await;
        let mut chosen = chosen.ok()?;
        chosen.fresh = self.chosen.fresh.take();
        self.chosen = chosen;
        Some(self.rewritten(&view, Kind::Searching, 0))
    }

    /// Sends a later leg. `before`: the block before a search's finds, which are withdrawn if the provider rejects them.
    pub async fn another(
        &mut self,
        kind: Kind,
        framing: Framing,
        mut before: Option<Block>,
        recorder: &mut Recorder,
    ) -> Result<Source, Failure> {
        loop {
            recorder.sending();
            let body = match self.sent.view() {
                Ok(view) => self.rewritten(&view, kind, recorder.outcome.usage.completion),
                // It was readable when the request came, so it is now.
                Err(error) => return Err(Failure::Unsent(SendError::Path(error.to_string()))),
            };
            let reply = self.send(self.mended(body)).await.map_err(Failure::Unsent)?;
            if is_refusal(reply.status())
                && let Some(before) = before.take()
            {
                // One bad schema fails a whole request: the finds are the only news in it.
                self.withdraw(before);
                continue;
            }
            if !reply.status().is_success() || self.framing(&reply) != framing {
                return Err(Failure::Refused(reply));
            }
            return source::source(reply).ok_or_else(|| Failure::Unsent(SendError::Broken("unknown encoding".into())));
        }
    }

    /// The body as the provider takes it.
    fn mended(&self, body: Bytes) -> Bytes {
        let text = std::str::from_utf8(&body).ok().filter(|_| self.mends);
        text.and_then(|text| self.sent.format.mended(text)).map_or_else(|| body.clone(), Bytes::from)
    }

    /// How a reply is cut into pieces. One whose type is not known is what the agent asked for: left unread it could
    /// show the agent a search.
    pub fn framing(&self, reply: &Response<Incoming>) -> Framing {
        source::framing(reply, &self.sent.path).unwrap_or(match (self.stream, self.sent.format) {
            (false, _) => Framing::Whole,
            (true, Format::Gemini) if !self.sent.path.contains("alt=sse") => Framing::Array,
            (true, _) => Framing::Sse,
        })
    }

    /// Sends a body that is ours.
    pub async fn send(&self, body: Bytes) -> Result<Response<Incoming>, SendError> {
        let head = self.head.for_body(body.len()).for_reading();
        self.app.upstreams.send(self.target(), head, Body::whole(body)).await
    }

    pub fn target(&self) -> Target<'_> {
        Target { upstream: &self.route.upstream, path: &self.sent.path }
    }

    /// Answers the searches of a leg; what is found is bound from now on. `over`: no search may follow.
    pub async fn answer(&mut self, leg: &Leg, over: bool, recorder: &mut Recorder) -> (Vec<Answer>, Vec<String>) {
        let mut answers = Vec::new();
        let mut names = Vec::new();
        let name = self.find_tools.as_ref().map(|tool| tool.name.clone()).unwrap_or_default();
        for (at, asked) in leg.searches.iter().enumerate() {
            if leg.misled.contains(&at) {
                recorder.outcome.searches.push(search::Outcome::Error);
                let text = search::misled(&name);
                answers.push(Answer { id: asked.id.clone(), name: dispatch::CALL_TOOL.to_owned(), text });
                continue;
            }
            let (text, outcome) = self.find(asked.query.as_deref(), over, &mut names).await;
            recorder.outcome.searches.push(outcome);
            answers.push(Answer { id: asked.id.clone(), name: name.clone(), text });
        }
        recorder.outcome.causes.extend((!names.is_empty()).then_some(Cause::Discovery));
        recorder.outcome.discovered.extend(names.iter().cloned());
        recorder.outcome.found.extend(names.iter().cloned());
        (answers, names)
    }

    async fn find(&mut self, query: Option<&str>, over: bool, names: &mut Vec<String>) -> (String, search::Outcome) {
        let Some(query) = query.map(str::trim).filter(|query| !query.is_empty()) else {
            return (search::broken(over), search::Outcome::Error);
        };
        let policy = &self.route.policy;
        let room = policy.max_tools.saturating_sub(self.chosen.block.declarations(self.chosen.binding));
        let most = policy.max_discovered_tools.min(room);
        match self.app.chooser.search(&self.chosen, query, &self.asked, most).await {
            Ok(Some(tools)) => {
                let tools = self.chosen.block.within(&self.chosen.roster, tools, room);
                if tools.is_empty() {
                    return (search::nothing(), search::Outcome::Nothing);
                }
                let place = Place::Appended(self.appended.len());
                self.chosen.block.declare(&self.chosen.roster, place, tools.iter().copied());
                names.extend(tools.iter().map(|tool| self.chosen.roster.name(*tool).to_owned()));
                (self.told(&tools, over), search::Outcome::Found)
            }
            Ok(None) => (search::nothing(), search::Outcome::Nothing),
            Err(error) => {
                tracing::warn!(%error, "a search by the model failed");
                (search::unavailable(), search::Outcome::Error)
            }
        }
    }

    /// What the model is told of what was found.
    fn told(&self, tools: &[usize], over: bool) -> String {
        let view = (self.chosen.binding == Binding::Dispatch).then(|| self.sent.view());
        let Some(Ok(view)) = view else { return search::found(&self.chosen.roster, tools, over) };
        let found = tools.iter().filter_map(|tool| view.tools.get(*tool));
        let found = found.map(|tool| (&*tool.name, &*tool.description, tool.parameters.as_deref().unwrap_or("{}")));
        search::described(dispatch::CALL_TOOL, &found.collect::<Vec<_>>(), over)
    }

    /// Answers the searches of a leg that was told before that searching is over.
    pub fn dismiss(&self, leg: &Leg, recorder: &mut Recorder) -> Vec<Answer> {
        recorder.outcome.searches.extend(leg.searches.iter().map(|_| search::Outcome::Exhausted));
        let name = self.find_tools.as_ref().map(|tool| tool.name.as_str()).unwrap_or_default();
        let answer = |(at, asked): (usize, &Search)| {
            let name = if leg.misled.contains(&at) { dispatch::CALL_TOOL } else { name };
            Answer { id: asked.id.clone(), name: name.to_owned(), text: search::exhausted() }
        };
        leg.searches.iter().enumerate().map(answer).collect()
    }

    /// The provider rejected the leg after a search: its finds are withdrawn, and the model is told so.
    fn withdraw(&mut self, before: Block) {
        self.chosen.block = before;
        if let Some(exchange) = self.appended.last_mut() {
            exchange.found.clear();
            for answer in &mut exchange.answers {
                answer.text = search::unavailable();
            }
        }
    }

    /// Notes for the next request what this one sends.
    pub async fn note(&self) {
        let way = self.way.with(self.chosen.binding);
        self.remembered.note(&*self.app.store, &self.conversation, way, Some(&self.chosen)).await;
    }

    /// Nothing has left, and what came cannot be shown: an error in the caller's shape.
    pub fn instead(&self, error: &BodyError, recorder: &mut Recorder) -> Response<Body> {
        let trouble = Trouble::Reply { name: self.route.upstream.name.clone(), why: error.to_string() };
        recorder.replied(trouble.status().as_u16());
        record::marked(respond::trouble(&self.sent.path, &trouble), &recorder.outcome)
    }

    /// The reply ends the turn: the next one begins with what was said last.
    pub fn foresee(&self, assembler: &Assembler) {
        let (text, calls) = assembler.visible();
        if calls.is_empty() {
            self.app.chooser.foresee(text);
        }
    }

    /// Remembers the hidden exchanges under the reply that the agent is shown.
    pub async fn remember(&self, assembler: &Assembler) {
        let (text, calls): (&str, &[Call]) = assembler.visible();
        if self.appended.is_empty() || (text.trim().is_empty() && calls.is_empty()) {
            return;
        }
        let (Ok(view), Some(value)) = (self.sent.view(), memory::written(&self.appended)) else { return };
        let digest = memory::digest(&view, self.sent.text(), text, calls);
        self.note().await;
        self.app.store.put_field(Op::StashPut, &recall::stash(&self.conversation), &digest, value, STASH_LIFE).await;
    }
}

/// Why a later leg gives no reply to go on with.
#[derive(Debug)]
pub enum Failure {
    Unsent(SendError),
    /// No success, or not what the first leg was.
    Refused(Response<Incoming>),
}

impl Failure {
    pub fn status(&self) -> u16 {
        match self {
            Self::Unsent(_) => StatusCode::BAD_GATEWAY.as_u16(),
            Self::Refused(reply) => reply.status().as_u16(),
        }
    }

    /// The reply that the agent gets when it has seen nothing yet: the provider's own, headers and all; for a request
    /// that the provider rejects, its reply to the agent's own bytes.
    pub async fn reply(self, narrowing: &Narrowing, recorder: &mut Recorder) -> Response<Body> {
        let reply = match self {
            // A success that is not what the first leg was has not been read: it may show a search.
            Self::Refused(reply) if is_refusal(reply.status()) || reply.status().is_success() => {
                recorder.outcome.action = Action::Full;
                recorder.outcome.reason = Bypass::Refused.label();
                recorder.sending();
                let (head, own) = narrowing.sent.own(&narrowing.head);
                narrowing.app.upstreams.send(narrowing.target(), head, Body::whole(own)).await
            }
            Self::Refused(reply) => Ok(reply),
            Self::Unsent(error) => Err(error),
        };
        let reply = match reply {
            Ok(reply) => {
                recorder.replied(reply.status().as_u16());
                relay::back(reply)
            }
            Err(error) => {
                recorder.replied(0);
                respond::trouble(&narrowing.sent.path, &Trouble::unreachable(&narrowing.route.upstream, &error))
            }
        };
        record::marked(reply, &recorder.outcome)
    }
}

/// Does the provider reject the request as it is? Servers that check it against a schema say 422.
pub fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}
