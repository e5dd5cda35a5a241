//! Any legs in any pieces, any format: the same reply, the provider's own bytes where nothing was hidden.

use packlight_fuzz::wire::reply::{Framing, Leg};
use packlight_fuzz::wire::{Assembler, Format, json};
use packlight_fuzz::{cut, run};

fn assemble(format: Format, framing: Framing, hold_text: bool, legs: &[Vec<&[u8]>]) -> (Vec<u8>, Vec<Leg>) {
    let mut assembler = Assembler::new(format, framing, "find_tools", hold_text);
    let (mut out, mut reports) = (Vec::new(), Vec::new());
    for (number, chunks) in legs.iter().enumerate() {
        for chunk in chunks {
            assembler.feed(chunk, &mut out);
        }
        let leg = assembler.end_leg();
        let goes_on = !leg.searches.is_empty() && leg.calls.is_empty() && number + 1 < legs.len();
        if !leg.searches.is_empty() {
            assembler.exchange(Vec::new(), Vec::new());
        }
        reports.push(leg);
        if !goes_on {
            break;
        }
        assembler.next_leg();
    }
    assembler.close(&mut out);
    (out, reports)
}

fn target(bytes: &[u8]) -> bool {
    let text = bytes.split(|byte| *byte == b'=').filter(|piece| !piece.starts_with(b" leg") || piece.len() > 4);
    let legs: Vec<&[u8]> = text.filter(|piece| !piece.is_empty()).take(4).collect();
    let mut far = false;
    for format in [Format::OpenAi, Format::Gemini, Format::Anthropic] {
        for framing in [Framing::Sse, Framing::Whole, Framing::Array] {
            for hold_text in [false, true] {
                let whole: Vec<_> = legs.iter().map(|leg| vec![*leg]).collect();
                let pieces: Vec<_> = legs.iter().map(|leg| cut(leg)).collect();
                let (out, reports) = assemble(format, framing, hold_text, &whole);
                let (again, reports_again) = assemble(format, framing, hold_text, &pieces);
                assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&again), "{format:?} {framing:?}");
                assert_eq!(reports, reports_again, "{format:?} {framing:?}");
                far |= reports.len() > 1;
                // A leg that breaks off within the name (`"name":"fin`) keeps that piece back too.
                let hidden = legs.first().is_some_and(|leg| json::may_name(leg, "find_tools"));
                if reports.len() == 1 && !hidden && reports[0].searches.is_empty() {
                    assert_eq!(out, legs[0], "{format:?} {framing:?}");
                }
            }
        }
    }
    far
}

fn main() {
    let endings: &[&str] = &[".sse", ".whole", ".array", ".txt"];
    run::run("reply", &[("openai", endings), ("gemini", endings), ("anthropic", endings)], target);
}
