//! What the model said in one leg, complete: its blocks in their own spelling. From it
//! come the leg's report and the message the provider must see again. NOT frames.

use super::block::Block;
use super::usage::Usages;
use crate::wire::hidden::Hidden;
use crate::wire::json::Object;
use crate::wire::query::query;
use crate::wire::reply::{Call, Leg, Search};
use crate::wire::request::{Answer, Exchange};

/// One leg.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) blocks: Vec<Block>,
    pub(super) finish: Option<String>,
    pub(super) failed: bool,
    pub(super) usage: Usages,
    /// Text of a leg that searches is not for the client.
    pub(super) holds_text: bool,
}

impl Heard {
    pub(super) fn new(holds_text: bool) -> Self {
        Self { holds_text, ..Self::default() }
    }

    /// Takes a block that begins, or a whole one; returns its place.
    pub(super) fn begin(&mut self, index: Option<u64>, block: &Object<'_>, hidden: &Hidden) -> usize {
        self.blocks.push(Block::begin(index, block, hidden));
        self.blocks.len() - 1
    }

    /// The place of the block that has this number, the newest if some server numbers several alike.
    pub(super) fn place(&self, index: Option<u64>) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.index == index)
    }

    /// No block grows any more.
    pub(super) fn settle(&mut self, hidden: &Hidden) {
        self.blocks.iter_mut().for_each(|block| block.settle(hidden));
    }

    pub(super) fn searched(&self) -> bool {
        self.blocks.iter().any(Block::is_ours)
    }

    /// Is there anything that the client must see otherwise than it came?
    pub(super) fn altered(&self) -> bool {
        self.searched() || self.blocks.iter().any(|block| block.native.is_some())
    }

    /// Is there a call that the agent answers?
    pub(super) fn called(&self) -> bool {
        self.blocks.iter().any(Block::is_own_call)
    }

    /// Is this leg's text kept from the client? Known once the leg is over.
    pub(super) fn mute(&self) -> bool {
        self.holds_text && self.searched() && !self.called()
    }

    /// Is this block kept from the client?
    pub(super) fn hides(&self, block: &Block) -> bool {
        block.is_ours() || (block.is_text() && self.mute())
    }

    /// `stop_reason` as the client may see it: where every call was hidden there is none to wait for.
    pub(super) fn shown_finish(&self) -> Option<&'static str> {
        (self.searched() && !self.called() && self.finish.as_deref() == Some("tool_use")).then_some("end_turn")
    }

    /// Gives ids to searches that came without. No two in a conversation may be alike: `message` is the reply's own id,
    /// `count` goes on over the reply.
    pub(super) fn name_searches(&mut self, message: &str, count: &mut usize) {
        for block in self.blocks.iter_mut().filter(|block| block.is_ours()) {
            block.name(|| {
                *count += 1;
                format!("toolu_{message}_{count}")
            });
        }
    }

    /// The text that the client has seen.
    pub(super) fn shown_text(&self) -> String {
        let shown = self.blocks.iter().filter(|block| block.is_text() && !self.hides(block));
        shown.map(|block| block.text("text")).collect()
    }

    pub(super) fn own_calls(&self) -> Vec<Call> {
        self.blocks.iter().filter(|block| block.is_own_call()).map(Block::call).collect()
    }

    pub(super) fn leg(&self, hidden: &Hidden) -> Leg {
        let searches = self.blocks.iter().filter(|block| block.is_ours());
        let misled = searches.clone().enumerate().filter(|(_, block)| !hidden.searches(&block.text("name")));
        Leg {
            misled: misled.map(|(at, _)| at).collect(),
            complete: self.finish.is_some(),
            failed: self.failed,
            finish: self.finish.clone(),
            searches: searches.map(|block| Search { id: block.text("id"), query: query(block.arguments()) }).collect(),
            calls: self.own_calls(),
            spoke: !self.shown_text().is_empty(),
            withheld: false,
            usage: self.usage.normalised(),
        }
    }

    pub(super) fn exchange(&self, answers: Vec<Answer>, found: Vec<String>) -> Exchange {
        let blocks: Vec<String> = self.blocks.iter().filter_map(Block::json).collect();
        Exchange {
            said: format!(r#"{{"role":"assistant","content":[{}]}}"#, blocks.join(",")),
            answers,
            text: self.shown_text(),
            reasoning: self.blocks.iter().map(|block| block.text("thinking")).collect(),
            mixed: self.called(),
            found,
        }
    }
}
