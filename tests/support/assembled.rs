//! One client's reply, put together from the bodies of its legs in any pieces, without a socket. NOT what it should be.

use packlight::wire::reply::{Call, Framing, Leg};
use packlight::wire::request::{Answer, Exchange};
use packlight::wire::{Assembler, Format};

/// One client's reply out of the legs' bodies.
#[derive(Debug, PartialEq)]
pub struct Reply {
    pub out: String,
    pub legs: Vec<Leg>,
    /// Of each leg that searched.
    pub exchanges: Vec<Exchange>,
    /// Text and calls.
    pub seen: (String, Vec<Call>),
}

/// `cuts`: where each body is cut, modulo its length. Every search is answered with the tool `x`.
pub fn assemble(format: Format, framing: Framing, hold_text: bool, bodies: &[&[u8]], cuts: &[usize]) -> Reply {
    let mut assembler = Assembler::new(format, framing, "find_tools", hold_text);
    let (mut out, mut legs, mut exchanges) = (Vec::new(), Vec::new(), Vec::new());
    for (at, body) in bodies.iter().enumerate() {
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut % (body.len() + 1)).collect();
        ends.extend([0, body.len()]);
        ends.sort_unstable();
        for range in ends.windows(2) {
            assembler.feed(&body[range[0]..range[1]], &mut out);
        }
        let leg = assembler.end_leg();
        if !leg.searches.is_empty() {
            let answer =
                |id: &String| Answer { id: id.clone(), name: "find_tools".to_owned(), text: "found: x".to_owned() };
            let answers = leg.searches.iter().map(|search| answer(&search.id)).collect();
            exchanges.push(assembler.exchange(answers, vec!["x".to_owned()]));
        }
        legs.push(leg);
        if at + 1 < bodies.len() {
            assembler.next_leg();
        }
    }
    assembler.close(&mut out);
    let (text, calls) = assembler.visible();
    let seen = (text.to_owned(), calls.to_vec());
    Reply { out: String::from_utf8_lossy(&out).into_owned(), legs, exchanges, seen }
}
