//! THE CORRIDOR: one request, top to bottom. Everything that goes wrong before the
//! upstream call is a [`Bypass`], and then the agent's own bytes are sent. NOT
//! formats, NOT arithmetic.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;

use super::Handler;
use super::app::App;
use super::asked;
use super::binding;
use super::body::Body;
use super::choose;
use super::coding::{self, Read};
use super::counting::Asking;
use super::head::Head;
use super::history;
use super::ledger::Measure;
use super::legs::{Kind, Narrowing};
use super::recall::Remembered;
use super::record::Recorder;
use super::relay;
use super::respond::{self, Trouble};
use super::route::Route;
use super::sent::{Arrived, Sent, Unread};
use super::shadow::Shadow;
use super::way;
use crate::config::narrow::Mode;
use crate::outcome::{Action, Outcome};
use crate::turn::bypass::Bypass;
use crate::turn::policy::{Asked, Way};
use crate::turn::transcript::Transcript;
use crate::turn::{memory, search, whole};
use crate::wire::Format;

/// Answers on the data port.
#[derive(Clone)]
pub struct Corridor(pub Arc<App>);

impl Handler for Corridor {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let app = &self.0;
        let Some((route, format, path)) = chat_route(app, &request) else {
            return relay::untouched(&app.upstreams, request).await;
        };
        let (parts, body) = request.into_parts();
        let asked = asked::asked(&parts.headers);
        let mode = asked::mode(&parts.headers).unwrap_or(route.mode);
        let mut chat = Chat::new(app, route, format, path, &parts, mode);
        let catalog = match app.catalogs.asked(&parts.headers) {
            Ok(catalog) => catalog,
            Err(trouble) => return respond::unread(&parts, body, chat.answered(&trouble)).await,
        };
        if mode == Mode::Off && catalog.is_none() {
            return chat.relay(Action::Relayed, Some(Bypass::Off), Body::received(body)).await;
        }
        let raw = match coding::whole(body, app.max_body).await {
            Read::Whole(bytes) => bytes,
            Read::TooLong(body) if catalog.is_some() => {
                return respond::unread(&parts, body, chat.answered(&Trouble::TooLong)).await;
            }
            Read::TooLong(body) => return chat.relay(Action::Full, Some(Bypass::TooLarge), body).await,
            Read::Broken => return respond::trouble(&chat.path, &Trouble::Body),
        };
        chat.recorder.arrived();
        let (headers, catalog) = (&parts.headers, catalog.as_ref());
        let arrived = Arrived { format, path: &chat.path, headers, raw: &raw, catalog, readings: &app.readings };
        let sent = match arrived.read(app.max_body, chat.route.upstream.max_tools).await {
            Ok(sent) => sent,
            Err(Unread::NoRoom(why)) => return chat.answered(&Trouble::NoRoom(why)),
            Err(Unread::Encoding) if catalog.is_some() => return chat.answered(&Trouble::Encoding),
            Err(Unread::Encoding) => {
                let action = if mode == Mode::Shadow { Action::Shadow } else { Action::Full };
                return chat.relay(action, Some(Bypass::Encoding), Body::whole(raw)).await;
            }
        };
        if mode == Mode::Shadow && catalog.is_none() {
            return chat.shadowed(headers, &sent, asked).await;
        }
        match chat.plan(headers, &sent, asked, mode).await {
            Plan::Narrow(narrowing, first) => chat.narrowed(*narrowing, first).await,
            Plan::Untouched(action, reason) => chat.own(action, reason, &sent).await,
        }
    }
}

/// What is done with a request whose body is whole.
pub(super) enum Plan {
    /// This body first.
    Narrow(Box<Narrowing>, Bytes),
    Untouched(Action, Option<Bypass>),
}

/// One chat request on its way.
pub struct Chat {
    pub(super) app: Arc<App>,
    pub(super) route: Arc<Route>,
    pub(super) format: Format,
    pub(super) head: Head,
    /// Below the prefix, with query.
    pub(super) path: String,
    pub(super) recorder: Recorder,
    /// What is remembered of a conversation that goes in full by choice.
    pub(super) noting: Option<(Remembered, String, Way)>,
}

impl Chat {
    fn new(
        app: &Arc<App>,
        route: Arc<Route>,
        format: Format,
        path: String,
        parts: &http::request::Parts,
        mode: Mode,
    ) -> Self {
        let outcome = Outcome {
            request: asked::request_id(),
            ts: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_millis() as f64 / 1e3),
            upstream: route.upstream.name.clone(),
            wire: format.label(),
            mode: mode.label(),
            ..Outcome::default()
        };
        let recorder = Recorder::new(app.clone(), outcome);
        Self { app: app.clone(), route, format, head: Head::of(parts).staying(), path, recorder, noting: None }
    }

    /// Reads, decides, chooses. In shadow the agent's bytes are sent whatever is found; the reason is told all the same.
    pub(super) async fn plan(&mut self, headers: &HeaderMap, sent: &Sent, mut asked: Asked, mode: Mode) -> Plan {
        let full = |bypass| match mode {
            Mode::Off => Plan::Untouched(Action::Relayed, Some(Bypass::Off)),
            Mode::Shadow => Plan::Untouched(Action::Shadow, Some(bypass)),
            Mode::Narrow => Plan::Untouched(Action::Full, Some(bypass)),
        };
        let path = sent.path.as_str();
        let view = match sent.view() {
            Ok(view) => view,
            Err(error) => return full(Bypass::Unreadable(error)),
        };
        let roster = self.app.chooser.roster(&self.route, &view, sent);
        let credential = asked::credential(headers, path);
        let conversation = memory::conversation(&self.route.upstream.name, &credential, &view);
        asked.payer.clone_from(&credential);
        asked.conversation.clone_from(&conversation);
        let outcome = &mut self.recorder.outcome;
        outcome.model = view.model.to_string();
        outcome.roster = view.tools.len();
        outcome.tools = Some(roster.clone());
        if let Some(lent) = &view.layout.lent {
            let called = view.messages.iter().flat_map(|message| &message.calls).map(|call| &*call.name);
            let must = called.chain(choose::wishes(&asked, &view.choice));
            outcome.fitting = sent.fit(whole::fitting(&roster, lent, must, self.route.upstream.max_tools));
        }
        outcome.measure();
        outcome.conversation = conversation.get(..16).unwrap_or_default().to_owned();
        outcome.account = asked::account(&self.route.upstream.name, &view.model, &credential);
        let measure = Measure::of(sent, &view, &roster, &self.route.policy, outcome.history.clone());
        outcome.system_parts = measure.history.len().saturating_sub(view.messages.len());
        self.app.ledger.measure(measure);
        let (route, head, format) = (&self.route, &self.head, self.format);
        let (model, digest, tools) = (view.model.as_ref(), roster.sizes().digest(), || sent.tools(&view));
        let asking = Asking { route, format, path, head, model, roster: digest, tools: &tools };
        self.app.counting.ask(&self.app, &asking);
        if mode == Mode::Off {
            return full(Bypass::Off);
        }
        let policy = &self.route.policy;
        if !roster.has_functions() {
            return full(Bypass::NoTools);
        }
        if let Some(bypass) = Bypass::of_traits(view.traits) {
            return full(bypass);
        }
        if !roster.named(&policy.find_tools_name).is_empty() {
            return full(Bypass::NameCollision);
        }
        if roster.documents().len() <= policy.max_retrieved_tools.bypass() {
            return full(Bypass::SmallRoster);
        }
        let transcript = Transcript::of(&view, &policy.query_ignore);
        outcome.turn = transcript.turns.len();
        outcome.call = transcript.call();
        if let Some(turn) = transcript.turns.last() {
            outcome.query = memory::fingerprint(&turn.utterance.text);
            outcome.asked(&turn.utterance.text, self.app.log_text);
        }
        if asked.resume || transcript.unanswered {
            return full(Bypass::Resume);
        }
        if transcript.silent || transcript.turns.is_empty() {
            return full(Bypass::NoQuery);
        }
        asked.begins = transcript.turns.last().is_some_and(|turn| turn.message + 1 >= view.messages.len());
        let (app, route) = (self.app.clone(), self.route.clone());
        let cut = outcome.fitting.is_some();
        let asking = binding::Request { route: &route, format, model, roster: &roster, cut };
        if mode == Mode::Shadow {
            let way = way::way(&app, &asking, &conversation, None);
            // What narrowing would miss is told of a conversation that would go in full as well, and that it would.
            let (binding, reason) = (way.binding(), matches!(way, Way::Full(_)).then_some(Bypass::Cost));
            let shadow = Shadow { sent: sent.clone(), roster, transcript, asked, binding };
            self.recorder.shadow(shadow.begin(&self.app, &self.route));
            return Plan::Untouched(Action::Shadow, reason);
        }
        if !asked::is_narrowed(&conversation, self.route.percent) {
            return Plan::Untouched(Action::Holdout, None);
        }
        let now = self.recorder.outcome.ts;
        let chosen = tokio::time::timeout(self.route.deadline, async {
            let (store, life) = (&*self.app.store, self.route.cache_life);
            let remembered = Remembered::of(store, &conversation, (&view, sent.text()), &transcript, now, life).await;
            let way = way::way(&app, &asking, &conversation, remembered.way());
            if let Way::Full(_) = way {
                return Ok((way, remembered, None));
            }
            let request = choose::Request { view: &view, transcript: &transcript, asked: &asked };
            let chosen = app.chooser.choose(&route, way.binding(), roster.clone(), &request, &remembered).await?;
            Ok::<_, Bypass>((way, remembered, Some(chosen)))
        });
        let (way, remembered, chosen) = match chosen.await {
            Err(_) => return full(Bypass::Deadline),
            Ok(Err(bypass)) => return full(bypass),
            Ok(Ok(known)) => known,
        };
        let Some(chosen) = chosen else {
            self.noting = Some((remembered, conversation, way));
            return full(Bypass::Cost);
        };
        history::learn(&self.app, &self.route, &chosen, &transcript, &view.messages, &asked);
        let find_tools = (policy.max_discovery_legs > 0).then(|| search::declaration(&policy.find_tools_name, &roster));
        let narrowing = Narrowing {
            app: self.app.clone(),
            route: self.route.clone(),
            head: self.head.clone(),
            sent: sent.clone(),
            asked: Asked { begins: false, ..asked },
            way,
            chosen,
            find_tools,
            remembered,
            appended: Vec::new(),
            conversation,
            hold_text: view.traits.structured,
            stream: view.stream,
            mends: false,
        };
        let first = narrowing.rewritten(&view, Kind::Searching, 0);
        self.recorder.outcome.explored = matches!(way, Way::Explored(_));
        self.recorder.narrowed(
            &narrowing.chosen,
            narrowing.find_tools.is_some(),
            narrowing.remembered.cause(&narrowing.chosen),
        );
        Plan::Narrow(Box::new(narrowing), first)
    }
}

/// The settings and the format of a chat request; `None`: it is relayed unread.
fn chat_route(app: &App, request: &Request<Incoming>) -> Option<(Arc<Route>, Format, String)> {
    let target = app.upstreams.find(request.uri())?;
    let format = Format::of_path(target.path).filter(|_| request.method() == Method::POST)?;
    Some((app.route(&target.upstream.name)?.clone(), format, target.path.to_owned()))
}
