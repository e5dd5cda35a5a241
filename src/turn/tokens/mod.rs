//! How many tokens a text is. [`count`] is o200k, exactly; for a provider with another tokenizer it is an estimate, and
//! is called one everywhere. [`quick`] is what stands in until somebody has counted. NOT what a provider billed.

mod merge;
mod split;
mod vocabulary;

/// Bytes per token of tool JSON in ASCII: 52,216 bytes of the 44-tool roster are 11,704 o200k tokens; public rosters lie
/// between 4.1 and 4.7.
const ASCII_BYTES: f64 = 4.46;
/// Tokens per character outside ASCII: o200k merges two to three letters of Arabic or Cyrillic, and one or two Han.
const OTHER_TOKENS: f64 = 0.55;

/// o200k tokens of a text, special tokens read as text. A microsecond a token, about: not for the way of a request.
pub fn count(text: &str) -> u64 {
    split::pieces(text).map(|piece| merge::count(piece.as_bytes())).sum()
}

/// About as many, by the number of characters.
pub fn quick(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|c| !c.is_ascii()).count();
    (ascii as f64 / ASCII_BYTES + other as f64 * OTHER_TOKENS).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn right(text: &str) -> u64 {
        tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len() as u64
    }

    /// Texts in which every branch of the pattern is met, in many scripts.
    const TEXTS: [&str; 24] = [
        "",
        "Delete the records I can't find, they'LL say it's HE'S don'T we've I'M Iſ x'ſy 'tis",
        r#"{"type":"function","function":{"name":"list_records","parameters":{"limit":{"type":"integer","maximum":100000}}}}"#,
        "camelCaseNames and HTTPServerError2024v12345",
        "  two  blanks\n\n  and\r\n\tlines \n",
        "trailing   ",
        "\u{a0}no break\u{3000}ideographic\u{2028}line",
        "// a comment ////\n/* x */ --- !!!\n\n!!/\n",
        "احذف السجلات التي لا أجدها، من فضلك ١٢٣٤",
        "السَّلَامُ عَلَيْكُمْ",
        "请删除我找不到的记录。还有ABC中文",
        "見つからないレコードを削除してください。ﾊﾝｶｸ",
        "찾을 수 없는 기록을 삭제해 주세요",
        "Удалите записи, которые я не могу найти",
        "מחק את הרשומות שאיני מוצא",
        "जो रिकॉर्ड मुझे नहीं मिल रहे हैं उन्हें हटा दें",
        "ลบระเบียนที่ฉันหาไม่พบ",
        "Διαγράψτε τις εγγραφές",
        "Größe naïve café Übung e\u{301}te\u{301} !\u{301}!!\u{301}x",
        "ǅ ǅx ǅA ʰa ªb",
        "emoji 👩‍👩‍👧‍👦 and 🏳️‍🌈 !",
        "<|endoftext|> is text here, <|endofprompt|> too",
        "½ Ⅷ ² 12345678901234567890 1,234.56",
        "\u{0}\u{1}\u{7f}\u{fffd}\u{10ffff}",
    ];

    #[test]
    fn every_script_counts_as_the_original_does() {
        for text in TEXTS {
            assert_eq!(count(text), right(text), "{text:?}");
            assert_eq!(split::pieces(text).collect::<String>(), text);
        }
        let roster = include_str!("../../demo/roster.json");
        assert_eq!(count(roster), right(roster));
    }

    #[test]
    fn a_piece_without_an_end_takes_no_square_of_its_length() {
        let long = "ab".repeat(200_000);
        let begun = std::time::Duration::from_secs(20);
        let (sent, done) = std::sync::mpsc::channel();
        let counting = std::thread::Builder::new().spawn(move || sent.send(count(&long)));
        assert!(done.recv_timeout(begun).is_ok_and(|tokens| tokens > 1000), "still counting");
        counting.expect("a thread").join().expect("it ended").expect("it was heard");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_text_counts_as_the_original_does(text in "\\PC{0,60}", mixed in "[ a-zA-Z0-9'\\r\\n/!\u{300}-\u{305}\u{4e00}-\u{4e05}ʰ\u{1c5}éÉ\t\u{a0}]{0,40}") {
            prop_assert_eq!(count(&text), right(&text));
            prop_assert_eq!(count(&mixed), right(&mixed));
        }
    }

    #[test]
    fn the_quick_way_grows_with_the_text_and_knows_other_scripts() {
        assert_eq!(quick(""), 0);
        assert_eq!(quick(&"a".repeat(446)), 100);
        assert_eq!(quick(&"ب".repeat(100)), 55);
    }
}
