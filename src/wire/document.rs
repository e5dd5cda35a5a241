//! The document of a request in one walk: the members that are read, the two
//! lists already cut into elements. NOT what the members mean.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a request's document.
#[derive(Default)]
pub struct Top<'a> {
    pub tools: List<'a>,
    pub messages: List<'a>,
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// One of the lists stands twice.
    twice: Option<&'static str>,
}

/// `tools` or `messages`.
#[derive(Default)]
pub enum List<'a> {
    /// Absent or null.
    #[default]
    Missing,
    Items(Vec<&'a RawValue>),
    /// Something else.
    Other,
}

/// `Cow<str>` borrows only behind this attribute.
#[derive(Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl<'a> Top<'a> {
    /// The first member of that name, other than the lists.
    pub fn find(&self, key: &str) -> Option<&'a RawValue> {
        self.others.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// One of these keys that stands twice.
    pub fn duplicate(&self, keys: &[&'static str]) -> Option<&'static str> {
        let count = |key: &str| self.others.iter().filter(|(name, _)| name == key).count();
        self.twice.or_else(|| keys.iter().copied().find(|key| count(key) > 1))
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
        let (mut tools, mut messages) = (false, false);
        while let Some(Text(key)) = map.next_key()? {
            match &*key {
                "tools" => {
                    top.twice = std::mem::replace(&mut tools, true).then_some("tools").or(top.twice);
                    top.tools = map.next_value()?;
                }
                "messages" => {
                    top.twice = std::mem::replace(&mut messages, true).then_some("messages").or(top.twice);
                    top.messages = map.next_value()?;
                }
                _ => top.others.push((key, map.next_value()?)),
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
