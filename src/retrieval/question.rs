//! What is asked of a roster: the last message, and what it follows. NOT
//! scores: which texts need a vector, and how much each counts.
//!
//! The last message alone fails in dialogue: of 7,658 turns that called tools 31 % were short nods, and read alone they
//! find their tool within the top 12 in 23 to 44 % of cases, with what they follow in 88 to 96 %. Always joining the
//! texts fails where the topic changes (first place 60 % to 22-29 %), so each is scored alone and the scores are added.
//! Last message alone and so, all needed tools within the top 12 (whole sets): acebench 93.2 and 99.0, its dialogues 87.0
//! and 97.3, bfcl-multi-turn 81.0 and 83.0 (the first place 61.0 and 57.8), tooltalk 76.8 and 84.8, own dialogues 81.5 and 92.3.

use std::sync::Arc;

use super::contentless;
use super::head::Head;
use super::lexical;
use super::negation;
use super::passages;

/// One user-authored message and the assistant's reply that came before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Utterance {
    /// The user's text, already without what agents wrap around it.
    pub text: String,
    /// The assistant's last visible text before it; empty: none.
    pub reply_before: String,
}

/// What is asked: texts that need a vector, and how they weigh.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// Every text that needs a vector, each once.
    texts: Vec<String>,
    last: Message,
    /// Earlier messages, newest first.
    earlier: Vec<Message>,
    closing: Message,
    /// What a head makes of the vectors of `texts`; `None`: there is no head.
    bent: Option<Vec<Arc<[f32]>>>,
}

/// Which message of a dialogue it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What is asked now.
    Last,
    /// What the user asked before.
    Earlier,
    /// The closing sentence of the assistant's reply between.
    Closing,
}

/// A message cut into passages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Message {
    passages: Vec<String>,
    /// Those that are read, best first is not implied.
    pub(super) parts: Vec<Part>,
    words: usize,
    is_phrase: bool,
}

/// A passage that is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    /// Its place among the passages.
    passage: usize,
    /// Its place in [`Question::texts`].
    pub(super) text: usize,
    /// What its score is multiplied with.
    pub(super) factor: f32,
}

impl Question {
    /// The question of `dialogue`'s last utterance in the light of the earlier ones. Negated spans are removed, long
    /// messages cut into passages. Of a long message the first passages are read until
    /// [`super::index::Index::focus`] says which matter for a roster.
    pub fn of(dialogue: &[Utterance]) -> Self {
        let Some((last, before)) = dialogue.split_last() else { return Self::default() };
        let mut earlier: Vec<Message> = Vec::new();
        for utterance in before.iter().rev() {
            let asks = earlier.iter().filter(|message| message.words > contentless::MOST_WORDS).count();
            if asks >= DECAY.len() || earlier.len() >= MOST_EARLIER {
                break;
            }
            earlier.extend(Some(Message::of(&utterance.text, 0)).filter(|message| !message.parts.is_empty()));
        }
        let closing = Message::plain(passages::closing(&last.reply_before));
        Self { last: Message::of(&last.text, INNER), earlier, closing, ..Self::default() }.laid_out()
    }

    /// A bare text: what `find_tools` is asked.
    pub fn bare(text: &str) -> Self {
        Self { last: Message::of(text, INNER), ..Self::default() }.laid_out()
    }

    /// The texts to embed as queries, in the order `rank` takes their vectors.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The vector of what is asked for: of the last message, or of the newest earlier one where that says nothing. Of a
    /// long message: of its first passage. `vectors`, `bank`: as for [`Self::contentless`].
    pub fn ask<'v>(
        &self,
        vectors: &'v [std::sync::Arc<[f32]>],
        bank: &[Vec<f32>],
    ) -> Option<&'v std::sync::Arc<[f32]>> {
        let asks = std::iter::once(&self.last).chain(&self.earlier);
        let ask = asks.into_iter().find(|message| !message.contentless(vectors, bank))?;
        vectors.get(ask.parts.first()?.text)
    }

    /// The last message as it is read: without what it rules out.
    pub(super) fn last_text(&self) -> String {
        self.last.passages.join("\n")
    }

    /// Does the message carry no content of its own ("yes, do it")? It then never grows a sticky block.
    /// `vectors` as for `rank`; `bank` as for [`super::index::Index::build`].
    pub fn contentless(&self, vectors: &[Arc<[f32]>], bank: &[Vec<f32>]) -> bool {
        self.last.contentless(vectors, bank)
    }

    /// Reads, of a long last message, its ends and the inner passages where `promise` is greatest.
    pub(super) fn focused(mut self, promise: &dyn Fn(&str) -> f32) -> Self {
        let inner = self.last.passages.len().saturating_sub(2);
        if inner <= INNER {
            return self;
        }
        let mut order: Vec<(usize, f32)> =
            (1..).zip(self.last.passages.iter().skip(1).take(inner)).map(|(at, text)| (at, promise(text))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.last.read(order.into_iter().take(INNER).map(|(at, _)| at));
        self.laid_out()
    }

    /// The same, its tools looked for with what `head` makes of these vectors. Whether it says anything is still judged
    /// by the vectors as they are. `vectors`: one per [`Self::texts`].
    pub fn bent(mut self, head: &Head, vectors: &[Arc<[f32]>]) -> Self {
        self.bent = Some(vectors.iter().map(|vector| head.apply(vector).into()).collect());
        self
    }

    /// Is the last message one passage?
    pub fn is_whole(&self) -> bool {
        self.last.parts.len() == 1
    }

    /// The vectors that tools are looked for with.
    pub(super) fn seen<'a>(&'a self, vectors: &'a [Arc<[f32]>]) -> &'a [Arc<[f32]>] {
        self.bent.as_deref().unwrap_or(vectors)
    }

    /// Which message it is; of each passage read its place in [`Self::texts`] and what it counts.
    pub(super) fn parts(&self, message: &Message) -> (Role, Vec<(usize, f32)>) {
        let role = if std::ptr::eq(message, &self.last) {
            Role::Last
        } else if std::ptr::eq(message, &self.closing) {
            Role::Closing
        } else {
            Role::Earlier
        };
        (role, message.parts.iter().map(|part| (part.text, part.factor)).collect())
    }

    /// What counts, and how much.
    pub(super) fn weighed(&self, vectors: &[Arc<[f32]>], bank: &[Vec<f32>]) -> Vec<(f32, &Message)> {
        let content = !self.contentless(vectors, bank);
        let (last, before, closing) = if content { CONTENT } else { NOD };
        let asks = self.earlier.iter().filter(|message| !message.contentless(vectors, bank));
        let mut out = vec![(last, &self.last), (closing, &self.closing)];
        out.extend(DECAY.into_iter().zip(asks).map(|(decay, ask)| (before * decay, ask)));
        out.retain(|(_, message)| !message.parts.is_empty());
        out
    }

    fn laid_out(mut self) -> Self {
        self.texts.clear();
        for message in [&mut self.last].into_iter().chain(&mut self.earlier).chain([&mut self.closing]) {
            for part in &mut message.parts {
                let Some(text) = message.passages.get(part.passage) else { continue };
                part.text = self.texts.iter().position(|known| known == text).unwrap_or_else(|| {
                    self.texts.push(text.clone());
                    self.texts.len() - 1
                });
            }
        }
        self
    }
}

impl Message {
    fn of(text: &str, inner: usize) -> Self {
        // Removing what is negated from a paste of pages costs more than it can tell: there it is done by passage.
        let passages: Vec<String> = if text.len() <= WHOLE {
            passages::cut(&negation::strip(text))
        } else {
            passages::cut(text).iter().map(|passage| negation::strip(passage).into_owned()).collect()
        };
        Self::made_of(passages, inner)
    }

    fn plain(text: &str) -> Self {
        Self::made_of(Some(text.to_owned()).filter(|text| !text.is_empty()).into_iter().collect(), 0)
    }

    fn made_of(passages: Vec<String>, inner: usize) -> Self {
        let (words, is_phrase) = match passages.as_slice() {
            [] => (0, false),
            [only] => (lexical::words(only).len(), contentless::is_phrase(only)),
            _ => (usize::MAX, false),
        };
        let mut message = Self { passages, parts: Vec::new(), words, is_phrase };
        message.read(1..=inner);
        message
    }

    /// Reads both ends, and these of the inner passages.
    fn read(&mut self, inner: impl IntoIterator<Item = usize>) {
        let Some(last) = self.passages.len().checked_sub(1) else { return };
        let part = |passage, factor| Part { passage, text: 0, factor };
        self.parts = vec![part(0, 1.0)];
        self.parts.extend((last > 0).then(|| part(last, 1.0)));
        self.parts.extend(inner.into_iter().filter(|at| (1..last).contains(at)).map(|at| part(at, DIMMED)));
    }

    fn contentless(&self, vectors: &[Arc<[f32]>], bank: &[Vec<f32>]) -> bool {
        let [part] = self.parts.as_slice() else { return false };
        self.is_phrase || vectors.get(part.text).is_some_and(|v| contentless::near(self.words, v, bank))
    }
}

/// Fixed phrases without content in many languages; embedded once per embedder.
pub fn contentless_phrases() -> &'static [&'static str] {
    contentless::PHRASES
}

/// Weights of the last message, of what came before, of the closing sentence of the reply between, where the last
/// message says something. 0.15 to 0.5 for what came before trade first places after a change of topic against
/// follow-ups along one curve; two unrelated earlier messages cost 1.6 points within the top 12.
const CONTENT: (f32, f32, f32) = (1.0, 0.25, 0.2);

/// The same where it says nothing: the ask before it and the assistant's question are the message.
const NOD: (f32, f32, f32) = (0.2, 1.0, 1.0);

/// Weights of earlier asks, newest first: each is worth 0.6 of the one after it.
const DECAY: [f32; 4] = [1.0, 0.6, 0.36, 0.22];

/// How far back to look for four asks among nods: each text may cost an embedding on a replica that starts cold.
const MOST_EARLIER: usize = 8;

/// Inner passages read: with two, chosen by their words, 66.6 % of long messages find their tool, with all 68.8 %, with
/// none 52.9 %.
const INNER: usize = 2;

/// Inner passages count less: what is asked mostly stands at an end (asks at the ends 67 to 72 %, in the middle 65 to 62 %).
const DIMMED: f32 = 0.8;

/// Bytes of a message whose negations are looked for across its passages.
const WHOLE: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str, reply_before: &str) -> Utterance {
        Utterance { text: text.into(), reply_before: reply_before.into() }
    }

    fn long() -> String {
        (0..9).map(|i| format!("paragraph {i} {}", "lorem ipsum ".repeat(20))).collect::<Vec<_>>().join("\n\n")
    }

    #[test]
    fn a_message_without_past_is_one_text_as_written() {
        let question = Question::of(&[says("  find   my mails ", "")]);
        assert_eq!(question.texts(), ["  find   my mails "]);
        assert_eq!(question, Question::bare("  find   my mails "));
        assert_eq!(Question::of(&[]).texts(), Vec::<String>::new());
        assert_eq!(Question::of(&[says(" \n", "")]).texts(), Vec::<String>::new());
    }

    #[test]
    fn equal_texts_are_embedded_once() {
        let question = Question::of(&[
            says("yes", ""),
            says("find the mail", ""),
            says("yes", "Shall I?"),
            says("yes", "Shall I?"),
        ]);
        assert_eq!(question.texts(), ["yes", "find the mail", "Shall I?"]);
    }

    #[test]
    fn a_nod_is_read_with_what_it_follows() {
        let dialogue =
            [says("archive the old tickets", ""), says("ok", "Which?"), says("evet", "3 found. Archive all 3?")];
        let question = Question::of(&dialogue);
        let vectors: Vec<Arc<[f32]>> = question.texts().iter().map(|_| Arc::from([0.0f32])).collect();
        assert!(question.contentless(&vectors, &[]));
        let weighed: Vec<(f32, &str)> =
            question.weighed(&vectors, &[]).iter().map(|(w, m)| (*w, m.passages[0].as_str())).collect();
        assert_eq!(weighed, [(0.2, "evet"), (1.0, "Archive all 3?"), (1.0, "archive the old tickets")]);
    }

    #[test]
    fn an_ask_leads_its_past() {
        let question = Question::of(&[says("show the deals", ""), says("now email them to Bob", "Here they are.")]);
        assert!(!question.contentless(&[], &[]));
        let weights: Vec<f32> = question.weighed(&[], &[]).iter().map(|(w, _)| *w).collect();
        assert_eq!(weights, [1.0, 0.2, 0.25]);
    }

    #[test]
    fn the_past_has_an_end() {
        let dialogue: Vec<Utterance> =
            (0..50).map(|i| says(&format!("please show me the deals of month number {i}"), "")).collect();
        assert_eq!(Question::of(&dialogue).texts().len(), 5);
        let nods: Vec<Utterance> = (0..50).map(|i| says(&format!("ok {i}"), "")).collect();
        assert_eq!(Question::of(&nods).texts().len(), 9);
    }

    #[test]
    fn of_a_long_message_its_ends_and_the_promising_passages_are_read() {
        let question = Question::bare(&long());
        assert_eq!(question.texts().len(), 4);
        let question = question
            .focused(&|text| if text.contains("paragraph 6") { 2.0 } else { f32::from(text.contains("paragraph 4")) });
        let read: Vec<&str> = question.texts().iter().filter_map(|text| text.get(..11)).collect();
        assert_eq!(read, ["paragraph 0", "paragraph 8", "paragraph 6", "paragraph 4"]);
    }
}
