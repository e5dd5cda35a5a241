//! Sends a chat request, rewritten or as it was sent, and its reply back: the agent's own where the
//! provider rejects ours. NOT what is in it (`handle`), NOT the legs of a search (`legs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;

use super::binding;
use super::body::Body;
use super::coding::{self, Coding, Read};
use super::handle::{Chat, Plan};
use super::head::{self, Head};
use super::legs::{self, Narrowing};
use super::mend;
use super::record::{marked, watched};
use super::reply::{self, Piece};
use super::respond::{self, Trouble};
use super::sent::Sent;
use super::source;
use super::upstream::Target;
use crate::config::narrow::Mode;
use crate::outcome::Action;
use crate::turn::bypass::Bypass;
use crate::turn::policy::{Asked, Binding};

/// How long a reply's head waits for its first byte, so that the failure of a later leg can still be its status.
const HEAD_WAIT: Duration = Duration::from_secs(3);

impl Chat {
    /// Sends a body as it came, and its reply back as it comes.
    pub(super) async fn relay(mut self, action: Action, reason: Option<Bypass>, body: Body) -> Response<Body> {
        self.untouched(action, reason.as_ref());
        let reply = self.send(self.head.clone(), body).await;
        self.shown(reply)
    }

    /// Sends what the agent sent, in full, and its reply back as it comes. One that is bypassed (not a comparison, which
    /// never hid anything) and refused for what hidden exchanges left in it is sent once more, mended.
    pub(super) async fn own(mut self, action: Action, reason: Option<Bypass>, sent: &Sent) -> Response<Body> {
        let (head, body) = sent.own(&self.head);
        self.untouched(action, reason.as_ref());
        if action != Action::Full {
            let reply = self.send(head, Body::whole(body)).await;
            return self.shown(reply);
        }
        let (store, noting) = (self.app.store.clone(), self.noting.take());
        let note = async {
            if let Some((remembered, conversation, way)) = &noting {
                remembered.note(&*store, conversation, *way, None).await;
            }
        };
        let (reply, ()) = tokio::join!(self.send(head, Body::whole(body.clone())), note);
        let reply = match reply {
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

    /// Sends what the agent sent, and reads it while the provider does: in shadow nobody waits for us.
    pub(super) async fn shadowed(mut self, headers: &HeaderMap, sent: &Sent, asked: Asked) -> Response<Body> {
        let (head, body) = sent.own(&self.head);
        let (app, route, path) = (self.app.clone(), self.route.clone(), self.path.clone());
        self.recorder.sending();
        let target = Target { upstream: &route.upstream, path: &path };
        let sending = app.upstreams.send(target, head, Body::whole(body));
        let planning = async {
            // It is the connection's task that sends, and it may be of this thread.
            tokio::task::yield_now().await;
            self.plan(headers, sent, asked, Mode::Shadow).await
        };
        let (reply, plan) = tokio::join!(sending, planning);
        match plan {
            Plan::Untouched(action, reason) => self.untouched(action, reason.as_ref()),
            // It is what a plan of this mode never says; sent is sent.
            Plan::Narrow(..) => self.untouched(Action::Shadow, None),
        }
        self.shown(reply.map_err(|error| Trouble::unreachable(&route.upstream, &error)))
    }

    /// Answers, and sends nothing: a request without the tools that it counts on would go wrong in silence.
    pub(super) fn answered(mut self, trouble: &Trouble) -> Response<Body> {
        self.untouched(Action::Full, Some(&Bypass::Catalog));
        self.recorder.replied(trouble.status().as_u16());
        marked(respond::trouble(&self.path, trouble), &self.recorder.outcome)
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
        let target = Target { upstream: &self.route.upstream, path: &self.path };
        let sent = self.app.upstreams.send(target, head, body).await;
        sent.map_err(|error| Trouble::unreachable(&self.route.upstream, &error))
    }

    /// Sends the rewritten request, and the reply back as one.
    pub(super) async fn narrowed(mut self, mut narrowing: Narrowing, first: Bytes) -> Response<Body> {
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
                None => return self.own(Action::Full, Some(Bypass::Refused), &narrowing.sent).await,
            }
        }
        if !reply.status().is_success() || Coding::of(reply.headers()) == Coding::Unknown {
            return watched(reply, self.format, &self.path, self.recorder);
        }
        let framing = narrowing.framing(&reply);
        self.recorder.outcome.status = reply.status().as_u16();
        let mut answer = Response::new(());
        *answer.status_mut() = reply.status();
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
