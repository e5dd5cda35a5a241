//! One member of an object as a span that can be taken out: key, value and one comma.
//! NOT parsing: the caller knows where the value stands from a parse of the same text.

use std::ops::Range;

/// The span to remove so that the member whose value stands at `value` is gone and the object stays one.
/// Its key must hold no escaped quote. `None` when `value` is no member's value.
pub fn with_comma(text: &str, value: &Range<usize>) -> Option<Range<usize>> {
    let key = text.get(..value.start)?.trim_end().strip_suffix(':')?.trim_end().strip_suffix('"')?;
    let before = key.get(..key.rfind('"')?)?;
    if let Some(kept) = before.trim_end().strip_suffix(',') {
        return Some(kept.len()..value.end);
    }
    let after = text.get(value.end..)?;
    let rest = after.trim_start();
    let comma = after.len() - rest.len();
    match rest.starts_with(',') {
        true => Some(before.len()..value.end + comma + 1),
        false => Some(before.len()..value.end),
    }
}

/// The place where a further member can be put, and whether it needs a comma before it. `None`: not an object.
pub fn end(object: &str) -> Option<(usize, bool)> {
    let inner = object.trim_end().strip_suffix('}')?;
    Some((inner.len(), !inner.trim_end().ends_with('{')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str, value: &str) -> String {
        let at = text.find(value).expect("value");
        let range = with_comma(text, &(at..at + value.len())).expect("member");
        format!("{}{}", &text[..range.start], &text[range.end..])
    }

    #[test]
    fn first_middle_last_and_only() {
        assert_eq!(without(r#"{ "a" : [1] , "b":2}"#, "[1]"), r#"{  "b":2}"#);
        assert_eq!(without(r#"{"a":1,"b" : [2],"c":3}"#, "[2]"), r#"{"a":1,"c":3}"#);
        assert_eq!(without(r#"{"a":1, "b":[2]}"#, "[2]"), r#"{"a":1}"#);
        assert_eq!(without(r#"{"a":[1]}"#, "[1]"), "{}");
    }

    #[test]
    fn a_place_for_one_more() {
        assert_eq!(end("{}"), Some((1, false)));
        assert_eq!(end("{ \"a\":1 } "), Some((8, true)));
        assert_eq!(end("[]"), None);
    }
}
