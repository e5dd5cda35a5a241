//! What each conversation cost, for comparing those that were narrowed with those held out. Beyond a cap, conversations
//! are sampled by their hash: a fair sample, since the hash knows nothing of them. A conversation counts whole, also its
//! requests that went in full: what is compared is narrowing switched on with narrowing switched off. NOT the sums of
//! all requests.

use std::collections::HashMap;

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::compare::{Change, Sample};
use super::names::OTHER;
use crate::decision::Decision;

/// Conversations kept; at 64 bytes each, 13 MB, and twice that while the table grows.
const MOST: usize = 200_000;
/// Pairs of upstream and model that are compared one by one.
const STRATA: usize = 64;

/// Conversations, or a fair sample of them.
#[derive(Debug)]
pub struct Conversations {
    known: HashMap<u64, Conversation>,
    /// Only hashes up to here are kept.
    highest: u64,
    most: usize,
    strata: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Conversation {
    stratum: u16,
    narrow: bool,
    holdout: bool,
    /// A request had usage and no price.
    unpriced: bool,
    calls: u32,
    prompt: u64,
    usd: f64,
}

/// Narrowed conversations against held out ones, of one upstream and model.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub upstream: String,
    pub model: String,
    /// Conversations compared.
    pub narrow: u64,
    pub holdout: u64,
    /// In both groups, since `percent` was changed on the way: compared with nothing.
    pub mixed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_call: Option<Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_conversation: Option<Change>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_per_call: Option<Change>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl Conversations {
    fn new(most: usize) -> Self {
        Self { known: HashMap::new(), highest: u64::MAX, most, strata: Vec::new() }
    }

    pub fn add(&mut self, decision: &Decision) {
        if decision.conversation.is_empty() {
            return;
        }
        // Hashed once more: the digest's own low bits decide about the holdout.
        let key = xxh3_64(decision.conversation.as_bytes());
        if key > self.highest {
            return;
        }
        if self.known.len() >= self.most && !self.known.contains_key(&key) {
            self.highest /= 2;
            let highest = self.highest;
            self.known.retain(|key, _| *key <= highest);
            if key > highest {
                return;
            }
        }
        let stratum = self.stratum(&decision.upstream, &decision.model);
        let conversation = self.known.entry(key).or_insert(Conversation { stratum, ..Conversation::default() });
        conversation.narrow |= decision.arm == "narrow";
        conversation.holdout |= decision.arm == "holdout";
        let Some(usage) = decision.usage else { return };
        conversation.calls = conversation.calls.saturating_add(1);
        conversation.prompt = conversation.prompt.saturating_add(usage.prompt);
        match decision.cost_usd {
            Some(usd) if usd.is_finite() => conversation.usd += usd,
            _ => conversation.unpriced = true,
        }
    }

    /// How many there were; an estimate when they were sampled.
    pub fn count(&self) -> u64 {
        (self.known.len() as f64 / self.sampled()) as u64
    }

    /// Share of conversations that is kept: 1, or less when there were too many.
    pub fn sampled(&self) -> f64 {
        self.highest as f64 / u64::MAX as f64
    }

    /// By upstream and model, most conversations first; only where both groups have some.
    pub fn compared(&self) -> Vec<Comparison> {
        #[derive(Default, Clone)]
        struct Group {
            all: u64,
            usd: Sample,
            prompt: Sample,
        }
        let mut groups = vec![(Group::default(), Group::default(), 0u64); self.strata.len()];
        let mut known: Vec<_> = self.known.iter().collect();
        // Sums of floats depend on their order, and a map has none.
        known.sort_unstable_by_key(|(key, _)| **key);
        for (_, conversation) in known {
            let Some((narrow, holdout, mixed)) = groups.get_mut(usize::from(conversation.stratum)) else { continue };
            let group = match (conversation.narrow, conversation.holdout) {
                (true, true) => {
                    *mixed += 1;
                    continue;
                }
                (true, false) => narrow,
                (false, true) => holdout,
                (false, false) => continue,
            };
            if conversation.calls == 0 {
                continue;
            }
            group.all += 1;
            let calls = f64::from(conversation.calls);
            group.prompt.add(conversation.prompt as f64, calls);
            if !conversation.unpriced {
                group.usd.add(conversation.usd, calls);
            }
        }
        let mut compared: Vec<Comparison> = Vec::new();
        for ((upstream, model), (narrow, holdout, mixed)) in self.strata.iter().zip(groups) {
            if narrow.all == 0 || holdout.all == 0 {
                continue;
            }
            let change = |of: fn(&Sample) -> Option<super::compare::Mean>, narrow: &Sample, holdout: &Sample| {
                Change::of(of(narrow)?, of(holdout)?)
            };
            compared.push(Comparison {
                upstream: upstream.clone(),
                model: model.clone(),
                narrow: narrow.all,
                holdout: holdout.all,
                mixed,
                usd_per_call: change(Sample::per_call, &narrow.usd, &holdout.usd),
                usd_per_conversation: change(Sample::per_conversation, &narrow.usd, &holdout.usd),
                prompt_per_call: change(Sample::per_call, &narrow.prompt, &holdout.prompt),
            });
        }
        compared.sort_by_key(|one| std::cmp::Reverse(one.narrow + one.holdout));
        compared
    }

    fn stratum(&mut self, upstream: &str, model: &str) -> u16 {
        let find = |strata: &[(String, String)], upstream: &str, model: &str| {
            strata.iter().position(|(u, m)| u == upstream && m == model)
        };
        let cut = |text: &str| text.get(..text.floor_char_boundary(128)).unwrap_or_default().to_owned();
        let (mut upstream, mut model) = (cut(upstream), cut(model));
        if find(&self.strata, &upstream, &model).is_none() && self.strata.len() >= STRATA {
            (upstream, model) = (OTHER.to_owned(), OTHER.to_owned());
        }
        let at = find(&self.strata, &upstream, &model).unwrap_or_else(|| {
            self.strata.push((upstream, model));
            self.strata.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Used;

    fn one(conversation: usize, arm: &str, usd: f64) -> Decision {
        Decision {
            conversation: format!("{conversation:016x}"),
            arm: arm.into(),
            upstream: "kimi".into(),
            model: "kimi-k3".into(),
            usage: Some(Used { prompt: 1000, cached: 0, completion: 10 }),
            cost_usd: Some(usd),
            ..Decision::default()
        }
    }

    #[test]
    fn whole_conversations_are_compared_and_mixed_ones_are_not() {
        let mut conversations = Conversations::default();
        for n in 0..10 {
            conversations.add(&one(n, "narrow", 0.5));
            conversations.add(&one(n, "bypass", 1.5));
            conversations.add(&one(100 + n, "holdout", 4.0));
            conversations.add(&one(200 + n, "bypass", 9.0));
        }
        conversations.add(&one(300, "narrow", 50.0));
        conversations.add(&one(300, "holdout", 50.0));
        let [compared] = conversations.compared().try_into().expect("one upstream and model");
        assert_eq!((compared.narrow, compared.holdout, compared.mixed), (10, 10, 1));
        let whole = compared.usd_per_conversation.expect("priced");
        assert_eq!((whole.narrow.mean, whole.holdout.mean, whole.share), (2.0, 4.0, -0.5));
        assert_eq!(compared.usd_per_call.expect("priced").share, -0.75);
    }

    #[test]
    fn too_many_are_sampled_and_the_mean_stays() {
        let mut conversations = Conversations::new(1_000);
        for n in 0..20_000 {
            conversations.add(&one(n, "narrow", if n % 2 == 0 { 1.0 } else { 3.0 }));
            conversations.add(&one(n + 1_000_000, "holdout", 4.0));
        }
        assert!(conversations.known.len() <= 1_000);
        let count = conversations.count();
        assert!((36_000..44_000).contains(&count), "{count}");
        let [compared] = conversations.compared().try_into().expect("one");
        let (low, high) = compared.usd_per_conversation.expect("priced").narrow.interval.expect("many");
        assert!(low < 2.0 && 2.0 < high, "{low} {high}");
    }
}
