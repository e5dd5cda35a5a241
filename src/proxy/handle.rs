//! THE CORRIDOR: one request, top to bottom. Everything that goes wrong before the
//! upstream call is a [`Bypass`], and then the agent's own bytes are sent. NOT
//! formats, NOT arithmetic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;

use super::Handler;
use super::app::App;
use super::asked;
use super::binding;
use super::body::Body;
use super::choose;
use super::coding::{self, Coding, Read};
use super::counting::Asking;
use super::head::{self, Head};
use super::history;
use super::ledger::Measure;
use super::legs::{self, Kind, Narrowing};
use super::mend;
use super::recall::Remembered;
use super::record::{Recorder, marked, watched};
use super::relay;
use super::reply::{self, Piece};
use super::respond::{self, Trouble};
use super::route::Route;
use super::shadow::Shadow;
use super::source;
use crate::config::narrow::Mode;
use crate::cost::policy::Traffic;
use crate::outcome::{Action, Outcome};
use crate::turn::bypass::Bypass;
use crate::turn::policy::{Asked, Binding};
use crate::turn::roster::Roster;
use crate::turn::transcript::Transcript;
use crate::turn::{memory, search};
use crate::wire::Format;

/// How long a reply's head waits for its first byte, so that the failure of a later leg can still be its status.
const HEAD_WAIT: Duration = Duration::from_secs(3);

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
        if mode == Mode::Off {
            return chat.relay(Action::Relayed, Some(Bypass::Off), Body::received(body)).await;
        }
        let sent = match coding::whole(body, app.max_body).await {
            Read::Whole(bytes) => bytes,
            Read::TooLong(body) => return chat.relay(Action::Full, Some(Bypass::TooLarge), body).await,
            Read::Broken => return respond::trouble(&chat.path, &Trouble::Body),
        };
        chat.recorder.arrived();
        match chat.plan(&parts.headers, &sent, asked, mode).await {
            Plan::Narrow(narrowing, first) => chat.narrowed(*narrowing, first, sent).await,
            Plan::Untouched(action, reason) => chat.own(action, reason, sent).await,
        }
    }
}

/// What is done with a request whose body is whole.
enum Plan {
    /// This body first.
    Narrow(Box<Narrowing>, Bytes),
    Untouched(Action, Option<Bypass>),
}

/// One chat request on its way.
struct Chat {
    app: Arc<App>,
    route: Arc<Route>,
    format: Format,
    head: Head,
    /// Below the prefix, with query.
    path: String,
    recorder: Recorder,
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
        Self { app: app.clone(), route, format, head: Head::of(parts), path, recorder }
    }

    /// Reads, decides, chooses. In shadow the agent's bytes are sent whatever is found; the reason is told all the same.
    async fn plan(&mut self, headers: &HeaderMap, sent: &Bytes, mut asked: Asked, mode: Mode) -> Plan {
        let action = if mode == Mode::Shadow { Action::Shadow } else { Action::Full };
        let full = |bypass| Plan::Untouched(action, Some(bypass));
        let coding = Coding::of(headers);
        if coding == Coding::Unknown {
            return full(Bypass::Encoding);
        }
        let Some(body) = coding::decoded(sent, coding, self.app.max_body).await else { return full(Bypass::Encoding) };
        let path = self.path.clone();
        let view = match self.format.view(&body, &path) {
            Ok(view) => view,
            Err(error) => return full(Bypass::Unreadable(error)),
        };
        let text = std::str::from_utf8(&body).unwrap_or_default();
        let roster = self.app.chooser.roster(&self.route, &view, text);
        let credential = asked::credential(headers, &path);
        let conversation = memory::conversation(&self.route.upstream.name, &credential, &view);
        asked.payer.clone_from(&credential);
        asked.conversation.clone_from(&conversation);
        let outcome = &mut self.recorder.outcome;
        outcome.model = view.model.to_string();
        outcome.roster = view.tools.len();
        outcome.roster_tokens = roster.sizes().all_tokens();
        outcome.tools = Some(roster.clone());
        outcome.conversation = conversation.get(..16).unwrap_or_default().to_owned();
        outcome.account = asked::account(&self.route.upstream.name, &view.model, &credential);
        let measure = Measure::of(&body, &view, &roster, &self.route.policy, outcome.history.clone());
        outcome.system_parts = measure.history.len().saturating_sub(view.messages.len());
        self.app.ledger.measure(measure);
        let tools = text.get(view.layout.tools.clone()).unwrap_or_default();
        let (format, path_of, model, digest) =
            (self.format, path.as_str(), view.model.as_ref(), roster.sizes().digest());
        let asking =
            Asking { route: &self.route, format, path: path_of, head: &self.head, model, roster: digest, tools };
        self.app.counting.ask(&self.app, &asking);
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
        if roster.documents().len() <= policy.max_retrieved_tools.most() {
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
        if mode == Mode::Shadow {
            let binding = self.binding(&view.model, &roster, &Remembered::default());
            let shadow = Shadow { format: self.format, path, body: body.clone(), roster, transcript, asked, binding };
            self.recorder.shadow(shadow.begin(&self.app, &self.route));
            return Plan::Untouched(Action::Shadow, None);
        }
        if !asked::is_narrowed(&conversation, self.route.percent) {
            return Plan::Untouched(Action::Holdout, None);
        }
        let now = self.recorder.outcome.ts;
        let chosen = tokio::time::timeout(self.route.deadline, async {
            let (store, life) = (&*self.app.store, self.route.cache_life);
            let remembered = Remembered::of(store, &conversation, (&view, text), &transcript, now, life).await;
            let binding = self.binding(&view.model, &roster, &remembered);
            let chooser = &self.app.chooser;
            let roster = roster.clone();
            let request = choose::Request { view: &view, transcript: &transcript, asked: &asked };
            let chosen = chooser.choose(&self.route, binding, roster, &request, &remembered).await?;
            Ok::<_, Bypass>((chosen, remembered))
        });
        let (chosen, remembered) = match chosen.await {
            Err(_) => return full(Bypass::Deadline),
            Ok(Err(bypass)) => return full(bypass),
            Ok(Ok(chosen)) => chosen,
        };
        history::learn(&self.app, &self.route, &chosen, &transcript, &view.messages, &asked);
        let find_tools = (policy.max_discovery_legs > 0).then(|| search::declaration(&policy.find_tools_name, &roster));
        let narrowing = Narrowing {
            app: self.app.clone(),
            route: self.route.clone(),
            format: self.format,
            head: self.head.clone(),
            path: path.clone(),
            body: body.clone(),
            own: sent.clone(),
            asked: Asked { begins: false, ..asked },
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
        self.recorder.narrowed(
            &narrowing.chosen,
            narrowing.find_tools.is_some(),
            narrowing.remembered.cause(&narrowing.chosen),
        );
        Plan::Narrow(Box::new(narrowing), first)
    }

    /// How what is added reaches the model.
    fn binding(&self, model: &str, roster: &Roster, remembered: &Remembered) -> Binding {
        let (app, route) = (&self.app, &*self.route);
        let request = binding::Request { route, format: self.format, model, roster };
        app.bindings.of(&request, remembered.binding(), || {
            let ratio = app.prices.find(model)?.ratio();
            Some(Traffic { ratio, ..app.expected(&route.upstream.name, model)? })
        })
    }

    /// Sends what the agent sent, and its reply back as it comes.
    async fn relay(mut self, action: Action, reason: Option<Bypass>, body: Body) -> Response<Body> {
        self.untouched(action, reason.as_ref());
        let reply = self.send(self.head.clone(), body).await;
        self.shown(reply)
    }

    /// The same with a body that is whole. One that is bypassed (not a comparison, which never hid anything) and refused
    /// for what hidden exchanges left in it is sent once more, mended.
    async fn own(mut self, action: Action, reason: Option<Bypass>, body: Bytes) -> Response<Body> {
        if action != Action::Full {
            return self.relay(action, reason, Body::whole(body)).await;
        }
        self.untouched(action, reason.as_ref());
        let reply = match self.send(self.head.clone(), Body::whole(body.clone())).await {
            Ok(refusal) if legs::is_refusal(refusal.status()) => {
                self.recorder.replied(refusal.status().as_u16());
                match mend::instead(self.format, &body, refusal).await {
                    Ok(mended) => self.send(self.head.for_body(mended.len()), Body::whole(mended)).await,
                    Err(refusal) => return marked(refusal, &self.recorder.outcome),
                }
            }
            reply => reply,
        };
        self.shown(reply)
    }

    /// The agent's own bytes are sent.
    fn untouched(&mut self, action: Action, reason: Option<&Bypass>) {
        self.recorder.outcome.action = action;
        self.recorder.outcome.reason = reason.map_or("", Bypass::label);
    }

    /// The reply as it comes, or why there is none.
    fn shown(self, reply: Result<Response<Incoming>, Trouble>) -> Response<Body> {
        match reply {
            Ok(reply) => watched(reply, self.format, &self.path, self.recorder),
            Err(trouble) => marked(respond::trouble(&self.path, &trouble), &self.recorder.outcome),
        }
    }

    async fn send(&mut self, head: Head, body: Body) -> Result<Response<Incoming>, Trouble> {
        self.recorder.sending();
        let target = super::upstream::Target { upstream: &self.route.upstream, path: &self.path };
        let sent = self.app.upstreams.send(target, head, body).await;
        sent.map_err(|error| Trouble::unreachable(&self.route.upstream, &error))
    }

    /// Sends the rewritten request, and the reply back as one.
    async fn narrowed(mut self, mut narrowing: Narrowing, first: Bytes, own: Bytes) -> Response<Body> {
        self.recorder.sending();
        // The store has all the time that the provider takes.
        let (reply, ()) = tokio::join!(narrowing.send(first.clone()), narrowing.note());
        let mut reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                let trouble = Trouble::unreachable(&self.route.upstream, &error);
                return marked(respond::trouble(&self.path, &trouble), &self.recorder.outcome);
            }
        };
        if legs::is_refusal(reply.status()) {
            // Whatever the reason, the agent's own request may fare better, and its answer is the one to show.
            match self.mended(&mut narrowing, &first, reply).await {
                Some(mended) => reply = mended,
                None => return self.own(Action::Full, Some(Bypass::Refused), own).await,
            }
        }
        if reply.status() != StatusCode::OK || Coding::of(reply.headers()) == Coding::Unknown {
            return watched(reply, self.format, &self.path, self.recorder);
        }
        let framing = narrowing.framing(&reply);
        self.recorder.outcome.status = reply.status().as_u16();
        let mut answer = Response::new(());
        *answer.headers_mut() = head::of_rewritten(reply.headers());
        let answer = marked(answer, &self.recorder.outcome);
        let Some(frames) = source::source(reply) else { return respond::trouble(&self.path, &Trouble::Body) };
        let head_sent = Arc::new(AtomicBool::new(false));
        let pieces = reply::pieces(narrowing, frames, framing, self.recorder, head_sent.clone());
        let mut pieces = Box::pin(pieces);
        let wait = if framing == crate::wire::reply::Framing::Whole { Duration::MAX } else { HEAD_WAIT };
        let begun = match tokio::time::timeout(wait, pieces.next()).await {
            Ok(Some(Piece::Instead(instead))) => return *instead,
            Ok(Some(Piece::Data(data))) if framing == crate::wire::reply::Framing::Whole => match pieces.next().await {
                None => return answer.map(|()| Body::whole(data)),
                Some(piece) => vec![Piece::Data(data), piece],
            },
            Ok(Some(piece)) => vec![piece],
            Ok(None) => Vec::new(),
            Err(_) => {
                head_sent.store(true, Ordering::Release);
                Vec::new()
            }
        };
        let frames = futures_util::stream::iter(begun).chain(pieces).map(|piece| match piece {
            Piece::Data(data) => Ok(Frame::data(data)),
            Piece::Trailers(trailers) => Ok(Frame::trailers(trailers)),
            Piece::Broken(error) => Err(error),
            Piece::Instead(_) => Err("the reply had begun".into()),
        });
        answer.map(|()| Body::made(StreamBody::new(frames)))
    }

    /// The reply to the same request without what the provider complains of: tools in messages that it does not take,
    /// what a lost memory of hidden exchanges left in it. `None`: that was not its complaint, or it did not help.
    async fn mended(
        &mut self,
        narrowing: &mut Narrowing,
        first: &Bytes,
        refusal: Response<Incoming>,
    ) -> Option<Response<Incoming>> {
        let Read::Whole(error) = coding::whole(refusal.into_body(), mend::ERROR_BYTES).await else { return None };
        if narrowing.chosen.binding == Binding::Append && binding::is_about_declarations(&error) {
            self.app.bindings.refused(&self.route, &self.recorder.outcome.model);
            self.recorder.outcome.append_refused = true;
            tracing::warn!(upstream = %self.route.upstream.name, "tools in messages were refused: replace for a while");
            let body = tokio::time::timeout(self.route.deadline, narrowing.rebound(Binding::Replace)).await.ok()??;
            self.recorder.narrowed(
                &narrowing.chosen,
                narrowing.find_tools.is_some(),
                narrowing.remembered.cause(&narrowing.chosen),
            );
            return self.accepted(narrowing, body).await;
        }
        if !self.format.may_mend(&error) {
            return None;
        }
        let body = self.format.mended(std::str::from_utf8(first).ok()?)?;
        let reply = self.accepted(narrowing, body.into()).await;
        narrowing.mends = reply.is_some();
        reply
    }

    /// The reply to this body, unless it is refused as well.
    async fn accepted(&mut self, narrowing: &Narrowing, body: Bytes) -> Option<Response<Incoming>> {
        self.recorder.sending();
        let reply = narrowing.send(body).await.ok()?;
        (!legs::is_refusal(reply.status())).then_some(reply)
    }
}

/// The settings and the format of a chat request; `None`: it is relayed unread.
fn chat_route(app: &App, request: &Request<Incoming>) -> Option<(Arc<Route>, Format, String)> {
    let target = app.upstreams.find(request.uri())?;
    let format = Format::of_path(target.path).filter(|_| request.method() == Method::POST)?;
    Some((app.route(&target.upstream.name)?.clone(), format, target.path.to_owned()))
}
