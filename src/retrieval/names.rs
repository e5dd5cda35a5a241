//! Tools that a text calls by name, exactly or with a slip of the pen. NOT similarity of meaning, NOT what is done
//! with a tool that is named.
//!
//! What counts as naming: an identifier that is the name up to case and separators (`delete_record`, `deleteRecord`,
//! glued to Han or an Arabic clitic or not); an identifier a slip away from it; the name's two or more words in a row
//! ("delete record"). A name that is one ordinary word (`search`) counts only where it is dressed as a name, in quotes,
//! backticks or before a parenthesis: said bare it is a word of the language, and the lexical voice hears it as one.
//!
//! Binding what is named changes no figure of the public sets within the top 12, since words find such tools already (87.2
//! with it and without, nine groups; the first place 61.1 and 61.2; 86 of 10,267 messages name a tool): it is a promise
//! to those who write a name, not a gain.

use std::collections::HashMap;

use super::document;

/// A roster's names, ready to be looked for.
#[derive(Debug, Default)]
pub struct Names {
    /// Folded name to its tools, in roster order.
    known: HashMap<String, Vec<usize>>,
    /// Every folded name by length in characters: a slip changes it by at most one or two.
    by_length: HashMap<usize, Vec<(String, usize)>>,
    /// Words of the longest name.
    longest: usize,
    /// Tools whose name is one ordinary word.
    ordinary: Vec<bool>,
}

impl Names {
    /// `names`: in the order of the roster.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut out = Self::default();
        for (tool, name) in names.enumerate() {
            let bare = bare(name);
            out.ordinary.push(is_ordinary(name));
            if bare.is_empty() {
                continue;
            }
            out.longest = out.longest.max(document::words(name).split(' ').count());
            out.by_length.entry(bare.chars().count()).or_default().push((bare.clone(), tool));
            out.known.entry(bare).or_default().push(tool);
        }
        out
    }

    /// Tools that a message names, in roster order, each once.
    pub fn in_message(&self, text: &str) -> Vec<usize> {
        let (mut out, mut near) = (Vec::new(), Vec::new());
        for word in identifiers(text) {
            match self.known.get(&bare(word.text)) {
                Some(tools) => out.extend(tools.iter().filter(|tool| word.dressed || !self.is_ordinary(**tool))),
                None if near.len() < MOST_NEAR && looks_made(word.text) => near.push(word.text),
                None => {}
            }
        }
        out.extend(near.into_iter().flat_map(|word| self.near(&bare(word))).map(|(_, tool)| tool));
        self.in_a_row(text, &mut out);
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Tools that a search by the model names, best first: the whole query may be a name, also an ordinary one.
    pub fn in_search(&self, query: &str) -> Vec<usize> {
        let whole = bare(query);
        let mut out: Vec<usize> = self.known.get(&whole).cloned().unwrap_or_default();
        let mut rest = self.in_message(query);
        let mut near = self.near(&whole);
        near.sort_unstable();
        rest.extend(near.into_iter().map(|(_, tool)| tool));
        for tool in rest {
            if !out.contains(&tool) {
                out.push(tool);
            }
        }
        out
    }

    fn is_ordinary(&self, tool: usize) -> bool {
        self.ordinary.get(tool).copied().unwrap_or(true)
    }

    /// Names a slip or two away: distance and tool. Numbers are never a slip: `page_2` is not `page_3`.
    fn near(&self, word: &str) -> Vec<(usize, usize)> {
        let length = word.chars().count();
        let most = slips(length);
        if most == 0 {
            return Vec::new();
        }
        let lengths = length - most..=length + most;
        lengths
            .filter_map(|length| self.by_length.get(&length))
            .flatten()
            .filter(|(name, _)| slips(name.chars().count()) > 0 && digits(name).eq(digits(word)))
            .map(|(name, tool)| (strsim::osa_distance(name, word), *tool))
            .filter(|(distance, _)| *distance <= most)
            .collect()
    }

    /// Names of two words or more that stand in the text word by word, with no punctuation between.
    fn in_a_row(&self, text: &str, out: &mut Vec<usize>) {
        let mut words: Vec<String> = Vec::new();
        let close = |words: &mut Vec<String>, out: &mut Vec<usize>| {
            for start in 0..words.len() {
                let mut joined = String::new();
                for word in words.iter().skip(start).take(self.longest) {
                    let first = joined.is_empty();
                    joined.push_str(word);
                    if let Some(tools) = self.known.get(&joined).filter(|_| !first) {
                        out.extend(tools.iter().filter(|tool| !self.is_ordinary(**tool)));
                    }
                }
            }
            words.clear();
        };
        for word in text.split_whitespace() {
            let core = word.trim_matches(|c: char| !c.is_alphanumeric());
            if core.is_empty() || !word.starts_with(core) {
                close(&mut words, out);
            }
            words.extend(document::words(core).split(' ').map(bare).filter(|word| !word.is_empty()));
            if !word.ends_with(core) {
                close(&mut words, out);
            }
        }
        close(&mut words, out);
    }
}

/// A name as it is compared: `deleteRecord`, `delete-record` and "Delete record" are one.
fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Identifiers of a message that are compared with every name of the roster, at most: a paste of code holds thousands,
/// and against 10,000 names each costs a fraction of a millisecond.
const MOST_NEAR: usize = 8;

/// Slips of the pen forgiven in a name of so many characters.
fn slips(length: usize) -> usize {
    match length {
        0..=5 => 0,
        6..=11 => 1,
        _ => 2,
    }
}

fn digits(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(char::is_ascii_digit)
}

/// One word of letters, at most its first a capital.
fn is_ordinary(name: &str) -> bool {
    name.chars().all(char::is_alphabetic) && !document::words(name).contains(' ')
}

/// Does it look like something that a person or a program made up, not like a word?
fn looks_made(word: &str) -> bool {
    word.contains(['_', '-', '.', '/', ':']) || document::words(word).contains(' ')
}

struct Word<'a> {
    text: &'a str,
    /// In quotes, in backticks, or before a parenthesis.
    dressed: bool,
}

/// Runs of what identifiers are made of, each whole, by its parts between `:` and `/` (`tool:delete_record`), and, where
/// scripts are glued together (`用delete_record删除`, `وdelete_record`), by its ASCII parts.
fn identifiers(text: &str) -> impl Iterator<Item = Word<'_>> {
    let whole = runs(text, |c| c.is_alphanumeric() || JOINTS.contains(&c));
    let parts = runs(text, |c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let ascii = runs(text, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    whole.chain(parts).chain(ascii).filter_map(move |(start, run)| word(text, start, run))
}

const JOINTS: [char; 5] = ['_', '-', '.', '/', ':'];

fn word<'a>(text: &'a str, start: usize, run: &'a str) -> Option<Word<'a>> {
    let core = run.trim_matches(|c| c != '_' && JOINTS.contains(&c));
    let at = start + run.find(core)?;
    let before = text.get(..at)?.chars().next_back();
    let after = text.get(at + core.len()..)?.chars().next();
    let quoted = matches!((before, after), (Some(open), Some(close)) if QUOTES.contains(&(open, close)));
    (!core.is_empty()).then_some(Word { text: core, dressed: quoted || after == Some('(') })
}

const QUOTES: [(char, char); 10] = [
    ('`', '`'),
    ('"', '"'),
    ('\'', '\''),
    ('“', '”'),
    ('„', '“'),
    ('‘', '’'),
    ('«', '»'),
    ('「', '」'),
    ('『', '』'),
    ('《', '》'),
];

/// Where each run of such characters starts, and the run.
fn runs(text: &str, of: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.find(of)?;
        let run = text.get(start..)?;
        let run = run.get(..run.find(|c| !of(c)).unwrap_or(run.len()))?;
        at = start + run.len();
        Some((start, run))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROSTER: [&str; 9] = [
        "delete_record",
        "getWeather",
        "search",
        "send-mail",
        "list_page_2",
        "crm.deals.find",
        "Fetch",
        "get_users",
        "خريطة_المكان",
    ];

    fn names() -> Names {
        Names::new(ROSTER.into_iter())
    }

    fn named(text: &str) -> Vec<&'static str> {
        names().in_message(text).into_iter().filter_map(|tool| ROSTER.get(tool).copied()).collect()
    }

    #[test]
    fn a_name_is_known_whatever_its_dress_and_script() {
        for text in [
            "use delete_record please",
            "deleteRecord(42)",
            "then delete-record.",
            "请用delete_record删除",
            "استخدم وdelete_record الآن",
            "delete_record'u çağır",
            "Delete record 42",
            "now delete_recrod it",
            "`delete_record`",
            "DELETE_RECORD",
        ] {
            assert_eq!(named(text), ["delete_record"], "{text}");
        }
        assert_eq!(named("افتح خريطة_المكان"), ["خريطة_المكان"]);
        assert_eq!(named("run crm.deals.find, then send-mial"), ["send-mail", "crm.deals.find"]);
    }

    #[test]
    fn ordinary_words_name_nothing() {
        for text in [
            "search my mail for the contract",
            "Search it. Fetch me a coffee",
            "who sent the mail? weather is fine",
            "delete. Record it again",
            "delete the record",
            "list page 3",
            "list_page_3",
            "",
            "👍 ( ) ` `",
        ] {
            assert_eq!(named(text), Vec::<&str>::new(), "{text}");
        }
        for text in ["call `search` first", "run search(\"x\")", "the tool \"search\"", "用「search」"] {
            assert_eq!(named(text), ["search"], "{text}");
        }
    }

    #[test]
    fn a_search_may_be_an_ordinary_name_as_a_whole() {
        assert_eq!(names().in_search("search"), [2]);
        assert_eq!(names().in_search(" Fetch "), [6]);
        assert_eq!(names().in_search("get wether"), [1]);
        assert_eq!(names().in_search("something else"), Vec::<usize>::new());
    }

    fn name() -> impl Strategy<Value = String> {
        let word = "[a-z]{3,8}";
        (word, prop_oneof![Just("_"), Just("-"), Just(".")], word, proptest::option::of("[a-z]{2,7}")).prop_map(
            |(first, joint, second, third)| match third {
                Some(third) => format!("{first}{joint}{second}{joint}{third}"),
                None => format!("{first}{joint}{second}"),
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn a_message_that_contains_a_name_names_it(
            name in name(), before in "(\\PC{0,20}[ ,:(`\"】。]|)", after in "([ ,:)`\"、]\\PC{0,20}|)"
        ) {
            let text = format!("{before}{name}{after}");
            prop_assert!(Names::new(["other_tool", &name].into_iter()).in_message(&text).contains(&1), "{}", text);
        }

        #[test]
        fn so_does_one_with_a_slip(name in name(), at in any::<prop::sample::Index>(), letter in "[a-z]", drop: bool) {
            let letters: Vec<usize> = name.match_indices(char::is_alphanumeric).map(|(at, _)| at).collect();
            prop_assume!(letters.len() >= 6);
            let at = letters[at.index(letters.len())];
            let slip = if drop { "" } else { &letter };
            let text = format!("please run {}{slip}{} now", &name[..at], &name[at + 1..]);
            prop_assume!(letters.len() > 6 || !drop);
            prop_assert!(Names::new(["zzzzzz_qqqqqq", &name].into_iter()).in_message(&text).contains(&1), "{}", text);
        }

        #[test]
        fn words_of_the_language_name_no_ordinary_tool(text in "([A-Za-zçğöşü]{1,10}[ ,.!?]{1,2}){0,30}") {
            prop_assert!(Names::new(["search", "Fetch", "list"].into_iter()).in_message(&text).is_empty());
        }

        #[test]
        fn anything_is_survived(text in "\\PC{0,300}", query in "\\PC{0,60}") {
            names().in_message(&text);
            names().in_search(&query);
        }
    }
}
