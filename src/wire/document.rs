//! The document of a request in one walk: the members that are read, the two
//! lists already cut into elements, a value of `tools` that is known passed over.
//! NOT what the members mean.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::known::{Known, Recall};

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
    /// It stands here, and is read.
    Known(Arc<Known>, usize),
    /// Something else.
    Other,
}

/// `Cow<str>` borrows only behind this attribute.
#[derive(Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl<'a> Top<'a> {
    /// `None`: it is not one JSON object.
    pub fn read(body: &'a str, recall: &Recall<'_>) -> Option<Self> {
        let mut top = Self::default();
        let (mut tools, mut messages) = (false, false);
        walk(body, |key, walk| {
            match &*key {
                "tools" => {
                    top.twice = std::mem::replace(&mut tools, true).then_some("tools").or(top.twice);
                    top.tools = match walk.recalled(recall) {
                        Some((known, at)) => List::Known(known, at),
                        None => walk.value()?,
                    };
                }
                "messages" => {
                    top.twice = std::mem::replace(&mut messages, true).then_some("messages").or(top.twice);
                    top.messages = walk.value()?;
                }
                _ => top.others.push((key, walk.value()?)),
            }
            Some(())
        })?;
        Some(top)
    }

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

/// Walks the members of an object: `member` gets each key, and must take its value. `None`: `member` says so, or it is
/// not one JSON object.
///
/// serde_json reads every key and value; the commas between them are read here, since a value that is known by its
/// bytes is passed over, which no reader of whole documents can do.
pub fn walk<'a>(body: &'a str, mut member: impl FnMut(Cow<'a, str>, &mut Walk<'a>) -> Option<()>) -> Option<()> {
    let mut walk = Walk { body, at: 0 };
    walk.sign(b'{')?;
    if walk.sign(b'}').is_none() {
        loop {
            let Text(key) = walk.value()?;
            walk.sign(b':')?;
            member(key, &mut walk)?;
            if walk.sign(b',').is_none() {
                break walk.sign(b'}')?;
            }
        }
    }
    walk.blank();
    walk.rest().is_empty().then_some(())
}

/// Where a walk has come to.
pub struct Walk<'a> {
    body: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// The value that stands here.
    pub fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<T>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }

    /// The value that stands here, and where, if it is known.
    pub fn recalled(&mut self, recall: &Recall<'_>) -> Option<(Arc<Known>, usize)> {
        self.blank();
        let (known, at) = (recall(self.rest())?, self.at);
        self.at += known.len();
        Some((known, at))
    }

    fn sign(&mut self, sign: u8) -> Option<()> {
        self.blank();
        (self.rest().as_bytes().first() == Some(&sign)).then(|| self.at += 1)
    }

    /// Past what JSON calls white space.
    fn blank(&mut self) {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().as_bytes().iter().take_while(blank).count();
    }

    fn rest(&self) -> &'a str {
        self.body.get(self.at..).unwrap_or_default()
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
