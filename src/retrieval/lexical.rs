//! Lexical evidence: BM25F over words and over pieces of words, language-neutral
//! counting. NOT a gate, NOT a stemmer, NOT stop words of any language.
//!
//! It speaks in proportion to how much of a text the roster's own vocabulary knows: an English roster asked in Arabic
//! hears nothing from it. Measured on sets it was not tuned on: English +2.4 points within the top 12 and +5.2 within
//! the top 5 (n 1,320), other languages -0.07 (n 1,373). Ungated sums lose 2 to 12 points there, rank fusion more.
//!
//! Without it and with it, all needed tools within the top 12 of whole sets: metatool 77.2 and 82.0, acebench 97.9 and
//! 99.0, its dialogues 93.9 and 97.3, bfcl-multi-turn 78.4 and 83.0, tooltalk 81.7 and 84.8, ha-intents in English 82.1
//! and 82.8, in 20 other languages 65.6 and 65.6, xsid-valid in English 98.3 and 97.4, in four others 93.3 and 93.2. By
//! language over all sets English gains 3.8 and Chinese 1.4, and what falls is Polish by .34 and Turkish by .29, a case
//! each; of one set in one language xsid-valid in English falls most, by .85, two of its 234 cases.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
use xxhash_rust::xxh3::xxh3_64;

use super::document::{self, Document};

/// What a text's words say about each tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// One per tool: words plus pieces, each as a fraction of the best a tool could reach; 0 to 2.
    pub scores: Vec<f32>,
    /// How much of the text's words, by weight, the roster knows; 0 to 1.
    pub coverage: f32,
}

/// A roster's counts.
#[derive(Debug)]
pub struct Lexical {
    words: Counts,
    pieces: Counts,
}

impl Lexical {
    pub fn build(documents: &[Document]) -> Self {
        let tools: Vec<Fields> = documents.iter().map(fields).collect();
        Self { words: Counts::build(&tools, hashes), pieces: Counts::build(&tools, pieces) }
    }

    /// Bytes in memory.
    pub fn weight(&self) -> usize {
        let counts = |counts: &Counts| {
            counts.postings.len() * size_of::<(u32, f32)>() + counts.terms.capacity() * (size_of::<(u64, Term)>() + 1)
        };
        counts(&self.words) + counts(&self.pieces)
    }

    pub fn evidence(&self, text: &str) -> Evidence {
        let words = words(text).join(" ");
        let mut scores = vec![0.0; self.words.tools];
        let coverage = self.words.add(hashes(&words), &mut scores);
        self.pieces.add(pieces(&words), &mut scores);
        Evidence { scores, coverage }
    }
}

/// A text's words: folded (case, compatibility forms, accents, harakat, tatweel), identifiers split; a run of letters
/// that are not spaced (Han, kana, Thai, Lao, Khmer, Myanmar) gives its pairs of characters.
pub fn words(text: &str) -> Vec<String> {
    let folded: String = document::words(text)
        .chars()
        .flat_map(char::to_lowercase)
        .flat_map(|c| match c {
            'ß' => ['s', 's'].into_iter().take(2),
            'ς' => ['σ', ' '].into_iter().take(1),
            _ => [c, ' '].into_iter().take(1),
        })
        .nfkd()
        .filter(|c| canonical_combining_class(*c) == 0 && *c != TATWEEL)
        .collect();
    let mut out = Vec::new();
    for run in folded.split(|c| !of_a_word(c)).filter(|run| !run.is_empty()) {
        if run.contains(unspaced) {
            let chars: Vec<char> = run.chars().collect();
            if chars.len() == 1 {
                out.push(run.to_owned());
            }
            out.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else {
            out.push(run.to_owned());
        }
    }
    out
}

/// Fields and their weights: name, keywords and category, description, parameter names, parameter descriptions, enum
/// values. Flat around these values on the six development sets.
const WEIGHTS: [f32; 6] = [3.0, 2.0, 1.0, 0.6, 0.3, 0.3];

/// Saturation of a term's count. Robertson's usual value; flat.
const K1: f32 = 1.2;

/// How much a field's length counts. Lower than the usual 0.75: tool fields are short.
const B: f32 = 0.5;

/// Lengths of the pieces of a word, in characters, its ends marked.
const PIECES: std::ops::RangeInclusive<usize> = 3..=5;

const TATWEEL: char = '\u{0640}';

/// The words of each field with a space between them: a roster of thousands is read twice, and its words as texts of
/// their own would take ten times the room.
type Fields = [String; 6];

fn fields(tool: &Document) -> Fields {
    let each =
        |texts: &mut dyn Iterator<Item = &String>| texts.flat_map(|text| words(text)).collect::<Vec<_>>().join(" ");
    [
        words(&tool.name).join(" "),
        each(&mut tool.keywords.iter().chain([&tool.category])),
        words(&tool.description).join(" "),
        each(&mut tool.parameters.iter().map(|p| &p.name)),
        each(&mut tool.parameters.iter().map(|p| &p.description)),
        each(&mut tool.parameters.iter().flat_map(|p| &p.values)),
    ]
}

/// Terms are known by their hash: a collision among a roster's few hundred thousand is a one in a billion event, and
/// would shift a score by one term.
fn hashes(words: &str) -> Vec<u64> {
    words.split_terminator(' ').map(|word| xxh3_64(word.as_bytes())).collect()
}

/// Hashes of the pieces of words, `^` and `$` at their ends. Not of words under three characters, not of unspaced ones.
fn pieces(words: &str) -> Vec<u64> {
    let mut out = Vec::new();
    let (mut marked, mut starts) = (String::new(), Vec::new());
    for word in words.split_terminator(' ') {
        if word.contains(unspaced) || word.chars().nth(2).is_none() {
            continue;
        }
        marked.clear();
        marked.push('^');
        marked.push_str(word);
        marked.push('$');
        starts.clear();
        starts.extend(marked.char_indices().map(|(at, _)| at));
        starts.push(marked.len());
        for length in PIECES {
            for (from, to) in starts.iter().zip(starts.iter().skip(length)) {
                out.extend(marked.as_bytes().get(*from..*to).map(xxh3_64));
            }
        }
    }
    out
}

fn of_a_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter | GeneralCategoryGroup::Mark | GeneralCategoryGroup::Number
    )
}

/// Scripts written without spaces: Thai and Lao, Myanmar, Khmer, kana, Han.
fn unspaced(c: char) -> bool {
    matches!(c as u32,
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029
        | 0x3038..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F
        | 0x20000..=0x323AF)
}

/// An inverted index: term to the tools that hold it and what it is worth there.
#[derive(Debug)]
struct Counts {
    tools: usize,
    terms: HashMap<u64, Term>,
    /// Tool, and idf times saturated count.
    postings: Vec<(u32, f32)>,
    /// The idf of a term no tool holds.
    unknown: f32,
}

#[derive(Debug, Default)]
struct Term {
    first: usize,
    count: usize,
    idf: f32,
}

impl Counts {
    /// `terms`: of a field's words. They are made twice, once to be counted and once to be placed: kept, those of a
    /// roster of thousands would take several times the room of what comes of them.
    fn build(tools: &[Fields], terms: impl Fn(&str) -> Vec<u64>) -> Self {
        let count = tools.len();
        let mut average = [0f32; 6];
        let mut known: HashMap<u64, Term> = HashMap::new();
        let mut of_tool: HashMap<u64, f32> = HashMap::new();
        for tool in tools {
            for (sum, field) in average.iter_mut().zip(tool) {
                let terms = terms(field);
                *sum += terms.len() as f32 / count as f32;
                of_tool.extend(terms.into_iter().map(|term| (term, 0.0)));
            }
            for (term, _) in of_tool.drain() {
                known.entry(term).or_default().count += 1;
            }
        }
        let mut placed = 0;
        for term in known.values_mut() {
            (term.first, term.idf) = (placed, idf(count, term.count));
            placed += term.count;
            term.count = 0;
        }
        let mut postings = vec![(0, 0.0); placed];
        for (at, tool) in (0u32..).zip(tools) {
            for ((field, weight), average) in tool.iter().zip(WEIGHTS).zip(average) {
                let terms = terms(field);
                let length = 1.0 - B + B * terms.len() as f32 / average.max(1e-9);
                for term in terms {
                    *of_tool.entry(term).or_default() += weight / length;
                }
            }
            for (term, tf) in of_tool.drain() {
                let Some(term) = known.get_mut(&term) else { continue };
                if let Some(posting) = postings.get_mut(term.first + term.count) {
                    *posting = (at, term.idf * (tf * (K1 + 1.0) / (tf + K1)));
                    term.count += 1;
                }
            }
        }
        Self { tools: count, terms: known, postings, unknown: idf(count, 0) }
    }

    /// Adds what each tool reaches of the best it could; returns how much of the terms is known, by weight.
    fn add(&self, mut query: Vec<u64>, scores: &mut [f32]) -> f32 {
        query.sort_unstable();
        query.dedup();
        let (mut known, mut all) = (0.0, 0.0);
        for term in &query {
            let idf = self.terms.get(term).map(|term| term.idf);
            known += idf.unwrap_or_default();
            all += idf.unwrap_or(self.unknown);
        }
        if known == 0.0 {
            return 0.0;
        }
        let best = all * (K1 + 1.0);
        for term in query.iter().filter_map(|term| self.terms.get(term)) {
            let postings = self.postings.get(term.first..term.first + term.count).unwrap_or_default();
            for (tool, worth) in postings {
                if let Some(score) = scores.get_mut(*tool as usize) {
                    *score += worth / best;
                }
            }
        }
        known / all
    }
}

fn idf(tools: usize, holding: usize) -> f32 {
    let (tools, holding) = (tools as f32, holding as f32);
    (1.0 + (tools - holding + 0.5) / (holding + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Document {
        Document { name: name.into(), description: description.into(), ..Document::default() }
    }

    fn roster() -> Lexical {
        Lexical::build(&[
            tool("send_mail", "Send an e-mail to somebody"),
            tool("deleteRecord", "Remove a record"),
            tool("weather", "Forecast for a place"),
        ])
    }

    fn best(evidence: &Evidence) -> Option<usize> {
        (0..evidence.scores.len()).max_by(|a, b| evidence.scores[*a].total_cmp(&evidence.scores[*b]))
    }

    #[test]
    fn folding_is_the_same_in_every_script() {
        assert_eq!(words("Ünlü STRASSE straße ΛΟΓΟΣ"), ["unlu", "strasse", "strasse", "λογοσ"]);
        assert_eq!(words("كِتَابٌ كتـــاب"), ["كتاب", "كتاب"]);
        assert_eq!(words("İstanbul’da"), ["istanbul", "da"]);
        assert_eq!(words("查天气 天"), ["查天", "天气", "天"]);
        assert_eq!(words("sendMail_v2 ﬁle"), ["send", "mail", "v2", "file"]);
        assert_eq!(words("👍 … "), Vec::<String>::new());
    }

    #[test]
    fn words_and_pieces_of_words_find_their_tool() {
        let lexical = roster();
        assert_eq!(best(&lexical.evidence("mail it to Bob")), Some(0));
        let pieces_only = lexical.evidence("deletion");
        assert_eq!(pieces_only.coverage, 0.0);
        assert_eq!(best(&pieces_only), Some(1));
    }

    #[test]
    fn another_script_is_met_with_silence() {
        let evidence = roster().evidence("كيف الطقس غدا");
        assert_eq!(evidence.coverage, 0.0);
        assert_eq!(evidence.scores, [0.0; 3]);
    }

    #[test]
    fn a_perfect_match_is_a_fraction_of_the_best_possible() {
        let evidence = roster().evidence("weather");
        assert!(evidence.coverage == 1.0);
        assert!((1.0..2.0).contains(&evidence.scores[2]), "{:?}", evidence.scores);
        assert_eq!(evidence.scores[0], 0.0);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(Lexical::build(&[]).evidence("mail").scores, Vec::<f32>::new());
        assert_eq!(roster().evidence("").scores, [0.0; 3]);
    }
}
