//! Every case of `tests/eval/negation.jsonl`, in eight languages: what a message rules out goes, its ask stays, and what
//! only sounds like it ("I can't remember", "don't forget", "no balcony") keeps its bytes.
//!
//! Tags: `strip` a clause goes · `carry` a part of a clause goes and the ask goes on in it · `hedge` a doubt or a plain
//! statement · `argument` the negation is part of what is asked for · `dont_forget` · `none` no negation, though its
//! letters stand in the text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use packlight::retrieval::negation::strip;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    lang: String,
    tags: Vec<String>,
    text: String,
    expected: String,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("eval/negation.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|problem| panic!("{problem}: {line}"))).collect()
}

#[test]
fn what_is_ruled_out_goes_and_nothing_else() {
    let wrong: Vec<String> = cases()
        .iter()
        .filter(|case| strip(&case.text) != case.expected)
        .map(|case| format!("{}: {} -> {}, not {}", case.id, case.text, strip(&case.text), case.expected))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_stays_is_the_very_same_text() {
    for case in cases().iter().filter(|case| case.text == case.expected) {
        assert!(matches!(strip(&case.text), Cow::Borrowed(same) if same == case.text), "{}", case.id);
    }
}

#[test]
fn stripping_once_is_enough() {
    for case in cases() {
        assert_eq!(strip(&case.expected), case.expected, "{}", case.id);
    }
}

/// What surrounds a message, other messages in other lines included, does not change what is ruled out in it.
#[test]
fn an_ask_beside_it_changes_nothing() {
    for case in cases().iter().filter(|case| case.tags == ["hedge"] || case.tags == ["dont_forget"]) {
        let text = format!("{}\n{}", "show the open deals", case.text);
        assert!(matches!(strip(&text), Cow::Borrowed(_)), "{}: {}", case.id, strip(&text));
    }
}

#[test]
fn cases_are_whole_and_many() {
    let cases = cases();
    assert!(cases.len() >= 160, "{} cases", cases.len());
    let (mut ids, mut texts) = (BTreeSet::new(), BTreeSet::new());
    let mut tags: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for case in &cases {
        assert!(ids.insert(&case.id) && texts.insert(&case.text), "{} twice", case.id);
        let [tag] = case.tags.as_slice() else { panic!("{}: one tag", case.id) };
        assert_eq!(case.text != case.expected, tag == "strip" || tag == "carry", "{}", case.id);
        tags.entry(&case.lang).or_default().insert(tag);
    }
    let all = ["argument", "carry", "dont_forget", "hedge", "none", "strip"];
    for lang in ["ar", "de", "en", "es", "fa", "fr", "tr", "zh"] {
        assert_eq!(tags.get(lang), Some(&all.into()), "{lang}");
    }
}

/// Words that say no "no" in eight languages, many of which hold a cue as a part.
const ORDINARY: &[&str] = &[
    "another",
    "noted",
    "knots",
    "banknote",
    "canteen",
    "plus-size",
    "passe",
    "Pascal",
    "passé",
    "compas",
    "sinfonía",
    "nota",
    "noviembre",
    "nombra",
    "Nichte",
    "Ohnesorg",
    "Stattliche",
    "keine-ahnung",
    "Kleinod",
    "ekleme-ekranı",
    "hatırlama",
    "Yemen",
    "zaman",
    "eleman",
    "çalışma",
    "خانه",
    "ماهنامه",
    "جایزه",
    "نامه",
    "زمان",
    "ماه",
    "طلاب",
    "الأمور",
    "مونيكا",
    "ماجد",
    "بدلات",
    "特别",
    "区别",
    "非洲",
    "不同",
    "没收",
    "open",
    "deals",
    "für",
    "alle",
    "اعرض",
    "المهام",
    "را",
    "نشان",
    "بده",
    "göster",
    "yarın",
    "列出",
    "明天的",
    "cherche",
    "dans",
    "busca",
    "en",
    "42",
    "👍",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_message_without_negation_keeps_its_bytes(
        words in proptest::collection::vec((proptest::sample::select(ORDINARY), "[ ]{1,3}|, |، |，|\\. |\n"), 0..40)
    ) {
        let text: String = words.iter().map(|(word, gap)| format!("{word}{gap}")).collect();
        prop_assert!(matches!(strip(&text), Cow::Borrowed(same) if same == text), "{} -> {}", text, strip(&text));
    }
}
