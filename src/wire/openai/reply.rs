//! Assembles the reply.
use crate::wire::reply::{Call, Framing, Leg, Progress};
use crate::wire::request::{Answer, Exchange};

/// Assembles the reply.
#[derive(Debug)]
pub struct Reader {}

impl Reader {
    pub fn new(_framing: Framing, _find_tools: &str, _hold_text: bool) -> Self {
        todo!()
    }
    pub fn feed(&mut self, _bytes: &[u8], _out: &mut Vec<u8>) -> Progress {
        todo!()
    }
    pub fn end_leg(&mut self) -> Leg {
        todo!()
    }
    pub fn exchange(&self, _answers: Vec<Answer>, _found: Vec<String>) -> Exchange {
        todo!()
    }
    pub fn next_leg(&mut self) {
        todo!()
    }
    pub fn close(&mut self, _out: &mut Vec<u8>) {
        todo!()
    }
    pub fn fail(&mut self, _message: &str, _out: &mut Vec<u8>) {
        todo!()
    }
    pub fn keep_alive(&self) -> &'static [u8] {
        todo!()
    }
    pub fn visible(&self) -> (&str, &[Call]) {
        todo!()
    }
}
