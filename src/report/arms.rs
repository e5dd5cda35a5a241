//! What was used and what it cost, by arm and by day. Provider-reported usage stands apart from estimates. NOT which arm
//! is better: the arms may carry different work; `conversations` compares what may be compared.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chart::clock;
use crate::decision::Decision;

/// In the order of a table.
const ARMS: [&str; 5] = ["narrow", "holdout", "shadow", "bypass", "off"];
/// Days that are told apart; a log that claims more has a broken clock.
const DAYS: usize = 400;

/// Sums as they are read.
#[derive(Debug, Default)]
pub struct Sums {
    arms: [Arm; ARMS.len()],
    days: BTreeMap<i64, Day>,
}

/// Sums of one arm.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Arm {
    pub arm: &'static str,
    pub requests: u64,
    /// Requests whose usage the provider reported: the rest has no part in the figures below.
    pub reported: u64,
    pub prompt: u64,
    pub cached: u64,
    pub completion: u64,
    /// By the configured prices.
    pub cost_usd: f64,
    /// Requests with usage and no price.
    pub unpriced: u64,
    /// Estimates: what was not sent, or in shadow would not have been.
    pub saved_tokens: i64,
    pub saved_usd: f64,
    /// Requests behind `saved_usd`.
    pub valued: u64,
}

/// Estimated savings of one day, UTC.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Day {
    pub date: String,
    pub requests: u64,
    pub saved_tokens: i64,
    pub saved_usd: f64,
    /// What shadow would have saved.
    pub shadow_usd: f64,
}

impl Sums {
    pub fn add(&mut self, decision: &Decision) {
        let at = ARMS.iter().position(|arm| *arm == decision.arm).unwrap_or(ARMS.len() - 1);
        let Some(arm) = self.arms.get_mut(at) else { return };
        arm.requests += 1;
        if let Some(usage) = decision.usage {
            arm.reported += 1;
            arm.prompt = arm.prompt.saturating_add(usage.prompt);
            arm.cached = arm.cached.saturating_add(usage.cached);
            arm.completion = arm.completion.saturating_add(usage.completion);
            match decision.cost_usd {
                Some(usd) if usd.is_finite() => arm.cost_usd += usd,
                _ => arm.unpriced += 1,
            }
        }
        let is_shadow = decision.arm == "shadow";
        let usd = decision.saved.usd.filter(|usd| usd.is_finite());
        arm.saved_tokens = arm.saved_tokens.saturating_add(decision.saved.tokens);
        arm.saved_usd += usd.unwrap_or_default();
        arm.valued += u64::from(usd.is_some());
        let day = clock::day(decision.ts);
        if self.days.len() < DAYS || self.days.contains_key(&day) {
            let day = self.days.entry(day).or_default();
            day.requests += 1;
            if is_shadow {
                day.shadow_usd += usd.unwrap_or_default();
            } else {
                day.saved_tokens = day.saved_tokens.saturating_add(decision.saved.tokens);
                day.saved_usd += usd.unwrap_or_default();
            }
        }
    }

    /// Arms with requests.
    pub fn arms(&self) -> Vec<Arm> {
        let named = ARMS.iter().zip(&self.arms).map(|(name, arm)| Arm { arm: name, ..arm.clone() });
        named.filter(|arm| arm.requests > 0).collect()
    }

    pub fn days(&self) -> Vec<Day> {
        self.days.iter().map(|(day, sums)| Day { date: clock::date(*day), ..sums.clone() }).collect()
    }
}

impl Arm {
    /// Share of input tokens that the provider read from its cache.
    pub fn cached_share(&self) -> f64 {
        self.cached as f64 / self.prompt as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Saved, Used};

    #[test]
    fn a_loss_stays_a_loss_and_what_has_no_price_is_counted() {
        let mut sums = Sums::default();
        let mut one = Decision {
            arm: "narrow".into(),
            usage: Some(Used { prompt: 100, cached: 80, completion: 5 }),
            cost_usd: Some(0.25),
            saved: Saved { tokens: -40, usd: Some(-0.5) },
            ..Decision::default()
        };
        sums.add(&one);
        one.ts = 86_400.0;
        one.cost_usd = None;
        one.saved.usd = None;
        sums.add(&one);
        one.arm = "holdout".into();
        one.usage = None;
        sums.add(&one);
        let [narrow, holdout] = sums.arms().try_into().expect("two arms");
        assert_eq!((narrow.arm, narrow.requests, narrow.unpriced, narrow.valued), ("narrow", 2, 1, 1));
        assert_eq!((narrow.cost_usd, narrow.saved_usd, narrow.saved_tokens), (0.25, -0.5, -80));
        assert_eq!(narrow.cached_share(), 0.8);
        assert_eq!((holdout.reported, holdout.prompt), (0, 0));
        assert_eq!(sums.days().iter().map(|day| day.date.as_str()).collect::<Vec<_>>(), ["1970-01-01", "1970-01-02"]);
    }
}
