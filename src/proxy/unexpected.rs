//! Gemini ends a reply with `UNEXPECTED_TOOL_CALL` when the model calls a function that
//! is not declared, and names it. If that is a tool of the agent's which was withheld,
//! and not one byte has left, the request is made once more with the tool declared: the
//! agent never learns of it. NOT for anything else a reply may end with.

use bytes::Bytes;

use super::legs::Narrowing;
use crate::wire::reply::Leg;

/// How such a reply ends.
const FINISH: &str = "UNEXPECTED_TOOL_CALL";
/// The same as JSON spells it. Within a text its quotes are escaped, so a reply that speaks of it does not match.
const SPELT: &[u8] = b"\"UNEXPECTED_TOOL_CALL\"";
/// Such replies are short; a longer one is let go.
const LONGEST: usize = 64 << 10;

/// A reply that may have to be made again.
#[derive(Debug, Default)]
pub struct Unexpected {
    raw: Vec<u8>,
    out: Vec<u8>,
    repaired: bool,
}

impl Unexpected {
    /// Takes what would be the reply's first bytes; `true`: they are held. `data`: as it came; `out`: as it would leave.
    pub fn holds(&mut self, data: &[u8], out: &mut Vec<u8>) -> bool {
        if self.repaired || self.raw.len() + data.len() > LONGEST {
            return self.let_go(out);
        }
        self.raw.extend_from_slice(data);
        let seen = self.raw.windows(SPELT.len()).any(|window| window == SPELT);
        if !seen {
            return self.let_go(out);
        }
        self.out.append(out);
        true
    }

    /// Binds the withheld tools that the reply names; `true`: there are some, and the reply can be made again.
    pub fn repairs(&mut self, leg: &Leg, narrowing: &mut Narrowing) -> bool {
        if self.repaired || leg.finish.as_deref() != Some(FINISH) {
            return false;
        }
        let text = String::from_utf8_lossy(&self.raw).into_owned();
        let words: std::collections::HashSet<&str> = text.split(|c: char| !is_name(c)).collect();
        let roster = narrowing.chosen.roster.clone();
        let named = (0..roster.len()).filter(|tool| words.contains(roster.name(*tool)));
        let block = &narrowing.chosen.block;
        let room = narrowing.route.policy.max_tools.saturating_sub(block.declarations(narrowing.chosen.binding));
        let withheld = block.within(&roster, named.filter(|tool| !block.contains(*tool)), room);
        withheld.iter().for_each(|tool| narrowing.chosen.block.insist(&roster, *tool));
        let added = withheld.len();
        if added > 0 {
            *self = Self { repaired: true, ..Self::default() };
        }
        added > 0
    }

    /// What was held and may leave after all.
    pub fn held(&mut self) -> Option<Bytes> {
        (!self.out.is_empty()).then(|| std::mem::take(&mut self.out).into())
    }

    fn let_go(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.out.is_empty() {
            self.out.append(out);
            std::mem::swap(&mut self.out, out);
        }
        false
    }
}

/// May this stand in a function's name?
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}
