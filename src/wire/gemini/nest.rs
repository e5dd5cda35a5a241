//! `tools` and `contents`: lists of objects that hold a list of objects, read with the span of each.
//! NOT their meaning.
//!
//! A raw value per level would read the same bytes once per level, five times for a declaration: 0.18 ms for 66 KB.
//! Here the inner objects are taken in one pass and the spans around them follow from where their keys stand.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::wire::json::{Object, elements, is_null, span};

/// One `Tool` or `Content`.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) span: Range<usize>,
    /// Its members but the list.
    pub(super) members: Object<'a>,
    /// `functionDeclarations` or `parts`: none, one, or several where the key stands twice.
    pub(super) lists: Vec<List<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct List<'a> {
    pub(super) span: Range<usize>,
    pub(super) items: Vec<Item<'a>>,
}

#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) object: Object<'a>,
    pub(super) span: Range<usize>,
}

/// The entries of a list; of one object in its place, that one. `None`: something that is no object stands in it.
pub(super) fn read<'a>(body: &str, raw: &'a RawValue) -> Option<Vec<Entry<'a>>> {
    in_one_pass(body, raw).or_else(|| level_by_level(body, raw))
}

/// `None` for all that is unusual: escaped keys, empty or absent lists, one object where a list is due.
fn in_one_pass<'a>(body: &str, raw: &'a RawValue) -> Option<Vec<Entry<'a>>> {
    let holders: Vec<Holder<'a>> = serde_json::from_str(raw.get()).ok()?;
    holders.into_iter().map(|holder| holder.placed(body)).collect()
}

fn level_by_level<'a>(body: &str, raw: &'a RawValue) -> Option<Vec<Entry<'a>>> {
    let entry = |raw: &'a RawValue| {
        let mut entry = Entry { span: span(body, raw.get()), members: Object(Vec::new()), lists: Vec::new() };
        for (key, value) in Object::of(raw)?.0 {
            if !holds_objects(&key) || is_null(value) {
                entry.members.0.push((key, value));
                continue;
            }
            let items = listed(value).into_iter().map(|raw| {
                let object = Object::of(raw)?;
                Some(Item { object, span: span(body, raw.get()) })
            });
            entry.lists.push(List { span: span(body, value.get()), items: items.collect::<Option<_>>()? });
        }
        Some(entry)
    };
    listed(raw).into_iter().map(entry).collect()
}

/// The elements of an array; of anything else, itself.
pub(super) fn listed(raw: &RawValue) -> Vec<&RawValue> {
    elements(raw).unwrap_or_else(|| vec![raw])
}

fn holds_objects(key: &str) -> bool {
    matches!(key, "functionDeclarations" | "function_declarations" | "parts")
}

/// An entry whose spans are not known yet.
struct Holder<'a>(Vec<(Cow<'a, str>, Member<'a>)>);

enum Member<'a> {
    Objects(Vec<Object<'a>>),
    Other(&'a RawValue),
}

impl<'a> Holder<'a> {
    fn placed(self, body: &str) -> Option<Entry<'a>> {
        let start = self.0.first().and_then(|(key, _)| before_key(body, key))?;
        let mut entry = Entry { span: start..start, members: Object(Vec::new()), lists: Vec::new() };
        let mut end = start;
        for (key, member) in self.0 {
            match member {
                Member::Other(value) => {
                    end = span(body, value.get()).end;
                    entry.members.0.push((key, value));
                }
                Member::Objects(objects) => {
                    let items: Vec<_> = objects.into_iter().map(|object| item(body, object)).collect::<Option<_>>()?;
                    let from = opened(body.get(..items.first()?.span.start)?, '[')?;
                    let list = List { span: from..closed(body, items.last()?.span.end, ']')?, items };
                    end = list.span.end;
                    entry.lists.push(list);
                }
            }
        }
        entry.span.end = closed(body, end, '}')?;
        Some(entry)
    }
}

fn item<'a>(body: &str, object: Object<'a>) -> Option<Item<'a>> {
    let start = object.0.first().and_then(|(key, _)| before_key(body, key))?;
    let end = object.0.last().and_then(|(_, value)| closed(body, span(body, value.get()).end, '}'))?;
    Some(Item { object, span: start..end })
}

/// Where the object begins whose first key this is.
#[expect(clippy::ptr_arg, reason = "only a borrowed key points into the body")]
fn before_key(body: &str, key: &Cow<'_, str>) -> Option<usize> {
    let Cow::Borrowed(key) = key else { return None };
    opened(body.get(..span(body, key).start)?.strip_suffix('"')?, '{')
}

/// Where the bracket stands at the end of `before`.
fn opened(before: &str, bracket: char) -> Option<usize> {
    before.trim_end().strip_suffix(bracket).map(str::len)
}

/// Where the bracket ends that comes next behind `at`.
fn closed(body: &str, at: usize, bracket: char) -> Option<usize> {
    body.get(at..)?.trim_start().strip_prefix(bracket).map(|rest| body.len() - rest.len())
}

/// `Cow<str>` borrows only behind this attribute.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Holder<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Holder<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(key)) = map.next_key()? {
                    let member = match holds_objects(&key) {
                        true => Member::Objects(map.next_value()?),
                        false => Member::Other(map.next_value()?),
                    };
                    members.push((key, member));
                }
                Ok(Holder(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Shape = Vec<(Range<usize>, Vec<String>, Vec<(Range<usize>, Vec<(Range<usize>, usize)>)>)>;

    fn shape(entries: Option<Vec<Entry<'_>>>) -> Option<Shape> {
        let list = |list: &List<'_>| {
            (list.span.clone(), list.items.iter().map(|item| (item.span.clone(), item.object.0.len())).collect())
        };
        let entry = |entry: Entry<'_>| {
            let keys = entry.members.0.iter().map(|(key, _)| key.to_string()).collect();
            (entry.span.clone(), keys, entry.lists.iter().map(list).collect())
        };
        Some(entries?.into_iter().map(entry).collect())
    }

    fn raw(body: &str) -> &RawValue {
        Object::parse(body).and_then(|object| object.find("v")).expect("v")
    }

    #[test]
    fn usual_lists_are_read_in_one_pass() {
        let body = r#"{"v": [ { "x" : {} , "parts" : [ { "a" : "}]" , "b":[1] } , {"c":1}] } ,{"parts":[{"d":{}}]}]}"#;
        let fast = shape(in_one_pass(body, raw(body)));
        assert!(fast.is_some());
        assert_eq!(fast, shape(level_by_level(body, raw(body))));
    }

    #[test]
    fn unusual_ones_level_by_level() {
        for body in [r#"{"v":{"parts":{"a":1}}}"#, r#"{"v":[{"parts":[]},{}]}"#, r#"{"v":[{"p\u0061rts":[{"a":1}]}]}"#]
        {
            let read = read(body, raw(body)).expect("entries");
            assert_eq!(body.get(read[0].span.clone()).map(|text| text.starts_with('{')), Some(true));
            assert_eq!(read[0].lists.len(), 1, "{body}");
        }
        assert!(read(r#"{"v":[1]}"#, raw(r#"{"v":[1]}"#)).is_none());
        assert!(read(r#"{"v":[{"parts":[1]}]}"#, raw(r#"{"v":[{"parts":[1]}]}"#)).is_none());
    }

    proptest! {
        #[test]
        fn one_pass_finds_what_the_levels_find(
            entries in proptest::collection::vec((0usize..3, 0usize..3, any::<bool>()), 0..4), space in "[ \n\t]{0,2}",
        ) {
            let item = format!(r#"{{{space}"name"{space}:{space}"a]}}\"",{space}"p":{{"x":[1e16]}}{space}}}"#);
            let entry = |(others, items, first): &(usize, usize, bool)| {
                let mut members: Vec<_> = (0..*others).map(|i| format!(r#""o{i}":{space}{{}}"#)).collect();
                let list = format!(r#""functionDeclarations"{space}:{space}[{}{space}]"#, vec![item.clone(); *items].join(","));
                members.insert(if *first { 0 } else { members.len() }, list);
                format!("{{{space}{}{space}}}", members.join(","))
            };
            let body = format!(r#"{{"v":{space}[{}]}}"#, entries.iter().map(entry).collect::<Vec<_>>().join(&format!("{space},")));
            let slow = shape(level_by_level(&body, raw(&body)));
            prop_assert!(slow.is_some());
            prop_assert_eq!(shape(read(&body, raw(&body))), slow);
        }
    }
}
