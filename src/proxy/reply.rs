//! The reply to a narrowed request: one body out of one or several legs. A single
//! `stream!` block without a task of its own: when the agent hangs up it is dropped
//! wherever it stands, and the upstream call with it. NOT formats, NOT policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_stream::stream;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::{HeaderMap, Response};
use http_body::Frame;

use super::body::{Body, BodyError};
use super::legs::{Kind, Narrowing};
use super::record::Recorder;
use super::source::Source;
use super::unexpected::Unexpected;
use crate::turn::search::{self, Again, Next};
use crate::wire::reply::{Framing, Leg, Progress};

/// Silence after which a held stream shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long the rest of an answered leg is read so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(200);

/// A piece of the reply.
pub enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    /// Nothing has left yet and a later leg failed: this is the reply instead.
    Instead(Box<Response<Body>>),
    /// The reply ends here, broken: the agent must see that.
    Broken(BodyError),
}

/// The reply. `head_sent`: set by the caller once a later leg's failure can no longer become the reply's status.
pub fn pieces(
    mut narrowing: Narrowing,
    mut source: Source,
    framing: Framing,
    mut recorder: Recorder,
    head_sent: Arc<AtomicBool>,
) -> impl Stream<Item = Piece> + Send {
    stream! {
        let mut assembler = narrowing.assembler(framing);
        let most = narrowing.route.policy.max_discovery_legs;
        let (mut extra, mut begun, mut hidden) = (0, false, false);
        let mut unexpected = Unexpected::default();
        loop {
            let (mut ended, mut held) = (false, false);
            let (mut broken, mut trailers) = (None, None);
            while !ended {
                let frame = tokio::select! {
                    frame = source.next() => frame,
                    () = tokio::time::sleep(KEEP_ALIVE), if held => {
                        let sign = assembler.keep_alive();
                        if !sign.is_empty() {
                            begun = true;
                            yield Piece::Data(Bytes::from_static(sign));
                        }
                        continue;
                    }
                };
                match frame {
                    None => break,
                    Some(Err(error)) => {
                        broken = Some(error);
                        break;
                    }
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => {
                            let mut out = Vec::new();
                            ended = assembler.feed(&data, &mut out) == Progress::Ended;
                            if !begun && unexpected.holds(&data, &mut out) {
                                continue;
                            }
                            held = out.is_empty();
                            if !held {
                                begun = true;
                                yield Piece::Data(out.into());
                            }
                        }
                        Err(frame) => trailers = frame.into_trailers().ok(),
                    },
                }
            }
            let leg = assembler.end_leg();
            recorder.leg(&leg, Some((&narrowing.chosen.roster, &narrowing.chosen.block)));
            hidden |= !leg.searches.is_empty();
            let next = if broken.is_some() { Next::Deliver } else { search::next(&leg, extra, most, narrowing.chosen.binding) };
            let again = match next {
                Next::Again(again) => {
                    let before = narrowing.chosen.block.clone();
                    let (answers, found) = match again {
                        Again::Dismissed => (narrowing.dismiss(&leg, &mut recorder), Vec::new()),
                        Again::Open | Again::Over | Again::Last => {
                            narrowing.answer(&leg, again != Again::Open, &mut recorder).await
                        }
                    };
                    let kind = match again {
                        Again::Open | Again::Over => Kind::Searching,
                        Again::Last | Again::Dismissed => Kind::Last,
                    };
                    narrowing.appended.push(assembler.exchange(answers, found));
                    extra += 1;
                    Some((kind, Some(before)))
                }
                Next::Deliver | Next::Exhausted if !begun && unexpected.repairs(&leg, &mut narrowing) => {
                    assembler = narrowing.assembler(framing);
                    Some((Kind::Searching, None))
                }
                Next::Deliver | Next::Exhausted => None,
            };
            if let Some((kind, before)) = again {
                if ended {
                    drain(&mut source).await;
                }
                let repairing = before.is_none();
                let another = {
                    let mut another = std::pin::pin!(narrowing.another(kind, framing, before, &mut recorder));
                    loop {
                        tokio::select! {
                            another = &mut another => break another,
                            () = tokio::time::sleep(KEEP_ALIVE) => {
                                let sign = assembler.keep_alive();
                                if begun && !sign.is_empty() {
                                    yield Piece::Data(Bytes::from_static(sign));
                                }
                            }
                        }
                    }
                };
                match another {
                    Ok(next) => {
                        source = next;
                        if !repairing {
                            assembler.next_leg();
                        }
                    }
                    Err(failure) if !begun && !head_sent.load(Ordering::Acquire) => {
                        yield Piece::Instead(Box::new(failure.reply(&narrowing, &mut recorder).await));
                        return;
                    }
                    Err(failure) => {
                        let status = failure.status();
                        recorder.replied(status);
                        let mut out = Vec::new();
                        assembler.fail(&format!("the provider failed after a tool search (status {status})"), &mut out);
                        yield Piece::Data(out.into());
                        return;
                    }
                }
                continue;
            }
            if let Some(out) = unexpected.held() {
                begun = true;
                yield Piece::Data(out);
            }
            if next == Next::Exhausted {
                recorder.outcome.searches.extend(leg.searches.iter().map(|_| search::Outcome::Exhausted));
            } else if !leg.searches.is_empty() && leg.complete {
                // Mixed with real calls, or cut by length: the finds are for the next request.
                let (answers, found) = narrowing.answer(&leg, true, &mut recorder).await;
                if !leg.calls.is_empty() {
                    narrowing.appended.push(assembler.exchange(answers, found));
                }
            }
            narrowing.remember(&assembler).await;
            let mut broken = broken.or_else(|| unusable(&leg, hidden).map(Into::into));
            let mut out = Vec::new();
            assembler.close(&mut out);
            let has_left = begun || head_sent.load(Ordering::Acquire);
            // Half of a document that is put together of two is nobody's bytes.
            let is_nothing = out.is_empty() || (hidden && framing == Framing::Whole);
            if let Some(error) = broken.as_ref().filter(|_| !has_left && is_nothing) {
                yield Piece::Instead(Box::new(narrowing.instead(error, &mut recorder)));
                return;
            }
            narrowing.foresee(&assembler);
            if !out.is_empty() {
                yield Piece::Data(out.into());
            }
            if ended && !hidden {
                // What a provider sends behind its end marker is not ours to judge.
                while let Some(frame) = source.next().await {
                    match frame.map(Frame::into_data) {
                        Ok(Ok(data)) => yield Piece::Data(data),
                        Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
                        Err(error) => {
                            broken = Some(error);
                            break;
                        }
                    }
                }
            } else if ended {
                drain(&mut source).await;
            }
            match (broken, trailers) {
                (Some(error), _) => yield Piece::Broken(error),
                (None, Some(trailers)) => yield Piece::Trailers(trailers),
                (None, None) => {}
            }
            return;
        }
    }
}

/// Why what came of the last leg is no end of a reply. `hidden`: a leg of it searched.
fn unusable(leg: &Leg, hidden: bool) -> Option<&'static str> {
    if leg.withheld {
        return Some("it cannot be read, and may hold a search that is not the agent's");
    }
    (hidden && !leg.complete && !leg.failed).then_some("it ended in the middle")
}

/// Reads what is left of a leg, so that its connection goes back to the pool.
async fn drain(source: &mut Source) {
    let rest = async { while source.next().await.is_some_and(|frame| frame.is_ok()) {} };
    let _ = tokio::time::timeout(DRAIN, rest).await;
}
