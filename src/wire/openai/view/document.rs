//! The document of a request in one walk: the members that are read, the two
//! lists already cut into elements. NOT what the members mean.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The keys that are read, and that must therefore not stand twice: which of the two a provider takes is its secret.
const READ: [&str; 13] = [
    "tools",
    "messages",
    "model",
    "stream",
    "tool_choice",
    "n",
    "response_format",
    "stream_options",
    "max_completion_tokens",
    "max_tokens",
    "extra_body",
    "google",
    "cached_content",
];

#[derive(Default)]
pub(super) struct Top<'a> {
    pub(super) tools: List<'a>,
    pub(super) messages: List<'a>,
    others: Vec<(&'static str, &'a RawValue)>,
    /// A key of [`READ`] that stands twice.
    pub(super) duplicate: Option<&'static str>,
}

#[derive(Default)]
pub(super) enum List<'a> {
    /// Absent or null.
    #[default]
    Missing,
    Items(Vec<&'a RawValue>),
    /// Something else.
    Other,
}

/// `Cow<str>` borrows only behind this attribute.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> Top<'a> {
    /// A member other than the lists; one of [`READ`].
    pub(super) fn find(&self, key: &str) -> Option<&'a RawValue> {
        self.others.iter().find(|(name, _)| *name == key).map(|(_, raw)| *raw)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Top<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Top<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut top = Top::default();
        let mut seen = [false; READ.len()];
        while let Some(Text(key)) = map.next_key()? {
            let known = READ.iter().zip(&mut seen).find(|(name, _)| **name == key);
            let Some((&name, seen)) = known else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if std::mem::replace(seen, true) {
                top.duplicate = Some(name);
            }
            match name {
                "tools" => top.tools = map.next_value()?,
                "messages" => top.messages = map.next_value()?,
                _ => top.others.push((name, map.next_value()?)),
            }
        }
        Ok(top)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Items)
    }
}

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = List<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(List::Items(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(List::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(List::Missing)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(List::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(List::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(List::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(List::Other)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(List::Other)
    }
}
