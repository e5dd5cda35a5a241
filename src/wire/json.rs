//! JSON seen as spans: the members of an object, the elements of an array, each
//! with the bytes it came from. NOT a value tree: numbers, escapes, key order
//! and duplicate keys stay as they were written (the failure of every gateway
//! that re-serialises: integers over 2^53 rounded, signatures lost).

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The members of one object, in order, duplicates included.
#[derive(Debug)]
pub struct Object<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

/// A key stands twice in an object where only one can be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate;

impl<'a> Object<'a> {
    /// The members of `text` if it is an object.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The members of `raw` if it is an object.
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        Self::parse(raw.get())
    }

    /// The first member of that name.
    pub fn find(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| *v)
    }

    /// The first member of either name: Gemini's JSON takes camelCase and snake_case.
    pub fn either(&self, camel: &str, snake: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(k, _)| k == camel || k == snake).map(|(_, v)| *v)
    }

    /// The one member of either name, or an error when there are several.
    pub fn only(&self, camel: &str, snake: &str) -> Result<Option<&'a RawValue>, Duplicate> {
        let mut found = self.0.iter().filter(|(k, _)| k == camel || k == snake);
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some((_, value)), None) => Ok(Some(value)),
            _ => Err(Duplicate),
        }
    }

    /// A member that is a string.
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.find(key).and_then(string)
    }

    /// A member that is `true`.
    pub fn is_true(&self, key: &str) -> bool {
        self.find(key).is_some_and(|raw| raw.get() == "true")
    }
}

/// The elements of `raw` if it is an array.
pub fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str::<Elements<'_>>(raw.get()).ok().map(|e| e.0)
}

/// The text of `raw` if it is a string; borrowed when it holds no escape.
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

/// `raw` as a `T` if it is an object: derived readers would take an array for one.
pub fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    raw.get().starts_with('{').then(|| serde_json::from_str(raw.get()).ok()).flatten()
}

/// A member that is `true`, or `false`, null or absent; `None`: it is something else.
pub fn flag(raw: Option<&RawValue>) -> Option<bool> {
    match raw.map(RawValue::get) {
        None | Some("null" | "false") => Some(false),
        Some("true") => Some(true),
        Some(_) => None,
    }
}

/// Is it `null`?
pub fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Where `part`, a slice of `whole`, stands in it. Empty when it is no part of it.
pub fn span(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    if start > whole.len() || part.len() > whole.len() - start {
        return 0..0;
    }
    start..start + part.len()
}

/// Where the array of these elements stands. Empty for an array without elements: nothing is ever edited there.
pub fn around(whole: &str, items: &[&RawValue]) -> Range<usize> {
    let ends = || {
        let start = span(whole, items.first()?.get()).start;
        let end = span(whole, items.last()?.get()).end;
        Some(whole.get(..start)?.rfind('[')?..end + whole.get(end..)?.find(']')? + 1)
    };
    ends().unwrap_or(0..0)
}

/// `text` as a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Could JSON that broke off tell of something of this name? Also when it broke off within the name.
pub fn may_name(bytes: &[u8], name: &str) -> bool {
    let name = name.as_bytes();
    let whole = !name.is_empty() && bytes.windows(name.len()).any(|window| window == name);
    let cut = (1..name.len()).any(|length| {
        let start = name.get(..length).unwrap_or_default();
        let before = bytes.strip_suffix(start).and_then(|before| before.strip_suffix(b"\""));
        let colon = before.and_then(|before| before.trim_ascii_end().strip_suffix(b":"));
        colon.is_some_and(|key| key.trim_ascii_end().ends_with(b"\"name\""))
    });
    whole || cut
}

struct Elements<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// `Cow<str>` borrows only behind this attribute.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = Elements<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Elements(items))
            }
        }
        deserializer.deserialize_seq(Items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_bytes_and_escaped_keys_match() {
        let text = r#"{"to\u006fls": [1, 9007199254740993001], "b":{"x":1.0}}"#;
        let object = Object::parse(text).expect("object");
        let tools = object.find("tools").expect("escaped key");
        assert_eq!(tools.get(), "[1, 9007199254740993001]");
        assert_eq!(&text[span(text, tools.get())], tools.get());
        assert_eq!(elements(tools).expect("array")[1].get(), "9007199254740993001");
    }

    #[test]
    fn a_key_that_stands_twice_is_an_error_where_one_is_meant() {
        let object = Object::parse(r#"{"a":1,"a":2}"#).expect("object");
        assert!(object.only("a", "a").is_err());
        assert!(object.only("b", "b").is_ok_and(|v| v.is_none()));
    }
}
