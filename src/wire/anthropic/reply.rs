//! Assembles the reply of one request from its legs. This file is the face; a
//! stream is put together in `stream`, one document in `whole`, and both learn
//! what the model said in `heard`. NOT deciding whether another leg follows.

mod block;
mod frame;
mod heard;
mod past;
mod stream;
mod usage;
mod whole;

use std::sync::Arc;

use self::heard::Heard;
use self::past::Past;
use self::stream::Stream;
use self::whole::Whole;
use crate::wire::dispatch::Dispatch;
use crate::wire::json;
use crate::wire::reply::{Call, Framing, Leg, Progress};
use crate::wire::request::{Answer, Exchange};

/// Assembles the reply.
#[derive(Debug)]
pub struct Reader(Kind);

#[derive(Debug)]
enum Kind {
    Stream(Box<Stream>),
    Whole(Box<Whole>),
}

impl Reader {
    /// `find_tools`: the name to hide. `hold_text`: keep a leg's text until its outcome is known. This format has no
    /// [`Framing::Array`]; such a body is one document.
    pub fn new(framing: Framing, find_tools: &str, hold_text: bool) -> Self {
        Self(match framing {
            Framing::Sse => Kind::Stream(Box::new(Stream::new(find_tools, hold_text))),
            Framing::Array | Framing::Whole => Kind::Whole(Box::new(Whole::new(find_tools, hold_text))),
        })
    }

    /// Calls of `call_tool` become the agent's own.
    pub fn dispatching(mut self, dispatch: Arc<Dispatch>) -> Self {
        match &mut self.0 {
            Kind::Stream(stream) => stream.hidden.dispatching(dispatch),
            Kind::Whole(whole) => whole.hidden.dispatching(dispatch),
        }
        self
    }

    /// Takes the next bytes of the leg; appends what the client may see. `Ended` means `message_stop` was read; bytes
    /// behind it may still be fed, and leave where nothing was hidden.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Progress {
        match &mut self.0 {
            Kind::Stream(stream) => stream.feed(bytes, out),
            Kind::Whole(whole) => {
                whole.feed(bytes);
                Progress::More
            }
        }
    }

    /// The leg's body is over. What its last bytes set free leaves with the next `feed`, `close` or `fail`.
    pub fn end_leg(&mut self) -> Leg {
        match &mut self.0 {
            Kind::Stream(stream) => stream.end_leg(),
            Kind::Whole(whole) => whole.end_leg(),
        }
    }

    /// The hidden exchange of the leg that ended.
    pub fn exchange(&self, answers: Vec<Answer>, found: Vec<String>) -> Exchange {
        self.heard().exchange(answers, found)
    }

    /// Another leg follows.
    pub fn next_leg(&mut self) {
        match &mut self.0 {
            Kind::Stream(stream) => stream.next_leg(),
            Kind::Whole(whole) => whole.next_leg(),
        }
    }

    /// The reply ends with the leg that ended. A leg that was cut gets no end that it did not have.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        match &mut self.0 {
            Kind::Stream(stream) => stream.close(out),
            Kind::Whole(whole) => whole.close(out),
        }
    }

    /// A later leg failed: an error event and no `message_stop`, or an error body.
    pub fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        let message = json::quoted(message);
        let error = format!(r#"{{"type":"error","error":{{"type":"api_error","message":{message}}}}}"#);
        match &mut self.0 {
            Kind::Stream(stream) => stream.fail(&error, out),
            Kind::Whole(_) => out.extend_from_slice(error.as_bytes()),
        }
    }

    /// The format's own sign of life: every SDK skips it, anywhere in a stream.
    pub fn keep_alive(&self) -> &'static [u8] {
        match self.0 {
            Kind::Stream(_) => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
            Kind::Whole(_) => b"",
        }
    }

    /// The text and the calls that the client has seen in the legs that are over.
    pub fn visible(&self) -> (&str, &[Call]) {
        self.past().visible()
    }

    fn heard(&self) -> &Heard {
        match &self.0 {
            Kind::Stream(stream) => &stream.heard,
            Kind::Whole(whole) => &whole.heard,
        }
    }

    fn past(&self) -> &Past {
        match &self.0 {
            Kind::Stream(stream) => &stream.past,
            Kind::Whole(whole) => &whole.past,
        }
    }
}
