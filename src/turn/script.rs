//! In which script a text is written, as far as that tells its language. NOT a language detector.

/// The language of a text whose script tells it (ISO 639), or `und-Latn` and the like where several are written so.
pub fn of(text: &str) -> Option<&'static str> {
    let mut counts = [0_usize; SCRIPTS.len()];
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        let known = SCRIPTS.iter().position(|(_, ranges)| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)));
        if let Some(count) = known.and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    // Kana tell Japanese from Chinese, however many Han stand between.
    let kana = counts.first().is_some_and(|kana| *kana > 0);
    let most = if kana { 0 } else { (0..counts.len()).rev().max_by_key(|at| counts.get(*at))? };
    counts.get(most).filter(|count| **count > 0)?;
    SCRIPTS.get(most).map(|(name, _)| *name)
}

/// Names and ranges; kana first.
const SCRIPTS: [(&str, &[(char, char)]); 11] = [
    ("ja", &[('\u{3040}', '\u{30ff}')]),
    ("zh", &[('\u{3400}', '\u{9fff}')]),
    ("ko", &[('\u{1100}', '\u{11ff}'), ('\u{ac00}', '\u{d7af}')]),
    ("ar", &[('\u{600}', '\u{6ff}'), ('\u{750}', '\u{77f}')]),
    ("he", &[('\u{590}', '\u{5ff}')]),
    ("hi", &[('\u{900}', '\u{97f}')]),
    ("th", &[('\u{e00}', '\u{e7f}')]),
    ("el", &[('\u{370}', '\u{3ff}')]),
    ("und-Cyrl", &[('\u{400}', '\u{52f}')]),
    ("und-Latn", &[('A', 'Z'), ('a', 'z'), ('\u{c0}', '\u{24f}')]),
    ("und", &[('\u{530}', '\u{58f}'), ('\u{980}', '\u{dff}'), ('\u{e80}', '\u{10ff}')]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_tells_some_languages_and_names_itself_for_others() {
        for (text, expected) in [
            ("احذف السجل records", Some("ar")),
            ("记录を削除して", Some("ja")),
            ("删除记录", Some("zh")),
            ("기록을 삭제", Some("ko")),
            ("Delete größere records", Some("und-Latn")),
            ("Удалить", Some("und-Cyrl")),
            ("123 !", None),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
