//! Fills one request's [`Outcome`] while its reply passes, and records it when the
//! reply is over or its client is gone. NOT what a series is called.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;

use super::app::App;
use super::body::{Body, BodyError};
use super::choose::Chosen;
use super::coding::Coding;
use super::head;
use super::shadow::Choosing;
use super::source;
use crate::outcome::{Action, Outcome, Verdict};
use crate::turn::bypass::Bypass;
use crate::turn::fold::{Block, Cause};
use crate::turn::roster::Roster;
use crate::wire::reply::{Leg, Progress};
use crate::wire::{Assembler, Format};

/// One request's outcome; recorded when this is dropped.
pub struct Recorder {
    app: Arc<App>,
    pub outcome: Outcome,
    /// In shadow: what would have been bound, once that is known.
    choosing: Option<Choosing>,
    /// When the body was whole, and when the upstream was called.
    arrived: Instant,
    sent: Option<Instant>,
}

impl Recorder {
    pub fn new(app: Arc<App>, outcome: Outcome) -> Self {
        Self { app, outcome, choosing: None, arrived: Instant::now(), sent: None }
    }

    /// The request's body is whole: from here on the time is ours.
    pub fn arrived(&mut self) {
        self.arrived = Instant::now();
    }

    /// The request will be narrowed so. `cause`: why that is not what the request before had.
    pub fn narrowed(&mut self, chosen: &Chosen, searchable: bool, cause: Option<Cause>) {
        self.outcome.action = Action::Narrowed;
        fill(&mut self.outcome, chosen, searchable, self.app.log_vectors);
        self.outcome.causes = cause.into_iter().collect();
    }

    /// The request is watched; what would have been bound is chosen beside it.
    pub fn shadow(&mut self, choosing: Choosing) {
        self.choosing = Some(choosing);
    }

    /// The upstream is called.
    pub fn sending(&mut self) {
        self.outcome.legs += 1;
        if self.sent.is_none() {
            let now = Instant::now();
            self.outcome.overhead = now - self.arrived;
            self.sent = Some(now);
        }
    }

    /// The status that the agent is shown, or would have been; 0: no reply came.
    pub fn replied(&mut self, status: u16) {
        self.outcome.status = status;
    }

    /// A leg is over. `bound`: what the model had in front of it; `None`: the agent's whole roster.
    pub fn leg(&mut self, leg: &Leg, bound: Option<(&Roster, &Block)>) {
        self.outcome.usage += leg.usage;
        self.outcome.first.get_or_insert(leg.usage);
        self.outcome.last = leg.usage;
        for call in &leg.calls {
            let verdict = match bound {
                None => Verdict::Bound,
                Some((roster, block)) => {
                    let Some(&tool) = roster.named(&call.name).first() else { continue };
                    if self.outcome.discovered.contains(&call.name) {
                        Verdict::Discovered
                    } else if block.contains(tool) {
                        Verdict::Bound
                    } else {
                        Verdict::Withheld
                    }
                }
            };
            self.outcome.called(&call.name, verdict);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(sent) = self.sent {
            self.outcome.upstream_time = sent.elapsed();
        }
        let mut outcome = std::mem::take(&mut self.outcome);
        let Outcome { request, upstream, action, reason, status, legs, .. } = &outcome;
        tracing::debug!(%request, %upstream, action = action.label(), reason, status, legs, "request");
        let Some(mut choosing) = self.choosing.take() else { return self.app.record(outcome) };
        if let Some(chosen) = choosing.known() {
            judge(&self.app, &mut outcome, chosen);
            self.app.record(outcome);
        } else if tokio::runtime::Handle::try_current().is_ok() {
            let app = self.app.clone();
            self.app.shutdown.spawn(async move {
                judge(&app, &mut outcome, choosing.done().await);
                app.record(outcome);
            });
        } else {
            self.app.record(outcome);
        }
    }
}

/// Notes in a shadow's outcome what would have been done.
fn judge(app: &App, outcome: &mut Outcome, chosen: Result<Chosen, Bypass>) {
    match chosen {
        Ok(chosen) => {
            let searchable = app.route(&outcome.upstream).is_some_and(|route| route.policy.max_discovery_legs > 0);
            fill(outcome, &chosen, searchable, app.log_vectors);
            outcome.judge();
        }
        Err(bypass) => outcome.reason = bypass.label(),
    }
}

/// Notes what was chosen.
fn fill(outcome: &mut Outcome, chosen: &Chosen, searchable: bool, log_vectors: bool) {
    outcome.binding = chosen.binding.label();
    outcome.bound = chosen.block.tools().map(|tool| chosen.roster.name(tool).to_owned()).collect();
    outcome.block = Some(chosen.block.clone());
    outcome.searchable = searchable;
    outcome.discovered = chosen.discovered.iter().map(|tool| chosen.roster.name(*tool).to_owned()).collect();
    outcome.causes = chosen.block.cause.into_iter().collect();
    outcome.ranking.clone_from(&chosen.ranking);
    outcome.head.clone_from(&chosen.head);
    outcome.selected = Some(chosen.selected);
    outcome.measure();
    if let Some(fresh) = &chosen.fresh {
        outcome.selection.clone_from(&fresh.selection);
        outcome.embed = Some(fresh.embed);
        outcome.rank = Some(fresh.rank);
        if log_vectors {
            outcome.vectors = fresh.vectors.iter().map(|vector| quantised(vector)).collect();
            outcome.embedder = fresh.model.as_deref().unwrap_or_default().to_owned();
        }
    }
}

/// A vector in bytes, its largest component ±127.
fn quantised(vector: &[f32]) -> Vec<i8> {
    let largest = vector.iter().fold(0.0_f32, |largest, component| largest.max(component.abs()));
    let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    vector.iter().map(|component| (component * scale).round() as i8).collect()
}

/// Says of a reply what was done with its request.
const HEADER: &str = "x-packlight";

/// `response` with that header.
pub fn marked<B>(mut response: Response<B>, outcome: &Outcome) -> Response<B> {
    if let Ok(value) = HeaderValue::from_str(&outcome.header()) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

/// A reply that passes as it comes, watched and marked.
pub fn watched(reply: Response<Incoming>, format: Format, path: &str, mut recorder: Recorder) -> Response<Body> {
    recorder.outcome.status = reply.status().as_u16();
    let readable = reply.status().is_success() && Coding::of(reply.headers()) == Coding::Identity;
    let framing = source::framing(&reply, path).filter(|_| readable);
    let reader = framing.map(|framing| Assembler::new(format, framing, "", false));
    let (mut parts, body) = reply.into_parts();
    head::strip_reply(&mut parts);
    let answer = marked(Response::from_parts(parts, ()), &recorder.outcome);
    answer.map(|()| Body::made(Watched::new(body, reader, recorder)))
}

/// A reply that passes untouched and is watched on its way: usage, calls.
pub struct Watched {
    inner: Incoming,
    /// `None`: nothing to read in it.
    reader: Option<Assembler>,
    /// What the reader would have sent.
    unused: Vec<u8>,
    seen: usize,
    recorder: Recorder,
}

/// A reply longer than this is not watched to its end: the reader of a whole document keeps it in memory.
const WATCHED_BYTES: usize = 32 << 20;

impl Watched {
    pub fn new(inner: Incoming, reader: Option<Assembler>, recorder: Recorder) -> Self {
        Self { inner, reader, unused: Vec::new(), seen: 0, recorder }
    }

    fn watch(&mut self, data: &Bytes) {
        let Some(reader) = &mut self.reader else { return };
        self.seen += data.len();
        if self.seen > WATCHED_BYTES {
            self.reader = None;
            return;
        }
        self.unused.clear();
        if reader.feed(data, &mut self.unused) == Progress::Ended {
            self.over();
        }
    }

    fn over(&mut self) {
        if let Some(mut reader) = self.reader.take() {
            self.recorder.leg(&reader.end_leg(), None);
        }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let watched = self.get_mut();
        let polled = Pin::new(&mut watched.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    watched.watch(data);
                    if watched.inner.is_end_stream() {
                        watched.over();
                    }
                }
            }
            Poll::Ready(None) => watched.over(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
