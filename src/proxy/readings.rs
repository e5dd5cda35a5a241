//! The values of `tools` that agents repeat, each read once. NOT how one is read or known again (`wire::known`).

use std::cell::Cell;
use std::sync::Arc;

use moka::sync::Cache;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::wire::known::Known;
use crate::wire::view::ChatView;
use crate::wire::{Format, WireError};

/// Bytes that are kept; of 44 tools some 80 KB.
const KEPT: u64 = 8 << 20;
/// Bytes of the beginning that a value is looked up by. A shorter one is read as quickly as it is found.
const BEGINNING: usize = 1024;
/// Bytes of a value that is kept, at most: some 1,500 tools. Longer ones would drive each other out.
const LONGEST: usize = 2 << 20;
/// Values of one beginning that are kept: rosters of one agent differ where they end.
const ALIKE: usize = 4;

/// Cheap to clone; clones share what is kept.
#[derive(Debug, Clone)]
pub struct Readings(Cache<u64, Arc<[Arc<Known>]>>);

impl Default for Readings {
    fn default() -> Self {
        let weigh = |_: &u64, alike: &Arc<[Arc<Known>]>| {
            let weight: usize = alike.iter().map(|known| known.weight()).sum();
            u32::try_from(weight).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().max_capacity(KEPT).weigher(weigh).build())
    }
}

impl Readings {
    /// Reads a request; its tools only if no request had the same.
    pub fn view<'a>(&self, format: Format, body: &'a str, path: &'a str) -> Result<ChatView<'a>, WireError> {
        let missed = Cell::new(None);
        let recall = |text: &str| {
            let key = xxh3_64_with_seed(text.as_bytes().get(..BEGINNING)?, format as u64);
            let known = self.0.get(&key).and_then(|alike| alike.iter().find(|known| known.begins(text)).cloned());
            missed.set(known.is_none().then_some(key));
            known
        };
        let view = format.view_recalling(body, path, &recall)?;
        if let Some(key) = missed.get().filter(|_| (BEGINNING..=LONGEST).contains(&view.layout.tools.len()))
            && let Some(known) = Known::of(body, &view)
        {
            let others = self.0.get(&key);
            let others = others.iter().flat_map(|alike| alike.iter()).take(ALIKE - 1).cloned();
            self.0.insert(key, std::iter::once(Arc::new(known)).chain(others).collect());
        }
        Ok(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(tools: usize, text: &str) -> String {
        let tool =
            |n: usize| format!(r#"{{"type":"function","function":{{"name":"t{n}","description":"{:>90}"}}}}"#, n);
        let tools: Vec<String> = (0..tools).map(tool).collect();
        format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}],"tools":[{}]}}"#, tools.join(","))
    }

    fn kept(readings: &Readings) -> Vec<usize> {
        readings.0.run_pending_tasks();
        readings.0.iter().map(|(_, alike)| alike.len()).collect()
    }

    #[test]
    fn a_value_is_kept_once_whatever_it_stands_in_and_beside_those_that_begin_alike() {
        let readings = Readings::default();
        let names = |body: &str| {
            let view = readings.view(Format::OpenAi, body, "").expect("a request");
            (view.tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>(), view.tools.len())
        };
        for text in ["one", "another", "a third"] {
            assert_eq!(names(&body(30, text)).1, 30);
        }
        assert_eq!(kept(&readings), [1]);
        for _ in 0..2 {
            for tools in [31, 32, 30] {
                let (names, count) = names(&body(tools, "x"));
                assert_eq!((count, names.last().cloned()), (tools, Some(format!("t{}", tools - 1))));
            }
        }
        assert_eq!(kept(&readings), [3]);
        for tools in 33..60 {
            assert_eq!(names(&body(tools, "x")).1, tools);
        }
        assert_eq!(kept(&readings), [ALIKE]);
    }

    #[test]
    fn a_short_value_is_not_kept() {
        let readings = Readings::default();
        readings.view(Format::OpenAi, &body(2, &"long ".repeat(400)), "").expect("a request");
        assert!(kept(&readings).is_empty());
    }
}
