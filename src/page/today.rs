//! What the requests of this day (UTC) come to, by upstream. Its size is bounded, whatever is called. NOT yesterday: that
//! is what `report` and Prometheus are for.

use crate::chart::clock;
use crate::decision::Decision;
use crate::report::arms::{Arm, Sums};
use crate::report::recall::{Calls, Recall};

/// Upstreams are configured, so there are few.
const UPSTREAMS: usize = 64;

/// Sums of a day.
#[derive(Debug, Default)]
pub struct Today {
    day: i64,
    upstreams: Vec<Upstream>,
}

#[derive(Debug)]
struct Upstream {
    name: String,
    sums: Sums,
    calls: Calls,
    failed_open: u64,
}

/// One upstream's day.
#[derive(Debug, Default)]
pub struct Day {
    pub arms: Vec<Arm>,
    pub recall: Option<Recall>,
    /// Requests that went in full because something of ours did not work.
    pub failed_open: u64,
}

/// Reasons that are failures of ours, or of what we depend on; the others are requests that are not meant to be narrowed.
pub const FAILURES: [&str; 5] = ["embedder", "deadline", "queue_full", "model_absent", "refused"];

impl Today {
    /// Counts one request.
    pub fn add(&mut self, decision: &Decision) {
        let day = clock::day(decision.ts);
        // What began before midnight and ends behind it counts for the new day: a sum never falls.
        if day > self.day {
            *self = Self { day, upstreams: Vec::new() };
        }
        let known = self.upstreams.iter().position(|upstream| upstream.name == decision.upstream);
        let at = known.unwrap_or_else(|| {
            if self.upstreams.len() < UPSTREAMS {
                let name = decision.upstream.clone();
                self.upstreams.push(Upstream { name, sums: Sums::default(), calls: Calls::new(None), failed_open: 0 });
            }
            self.upstreams.len() - 1
        });
        let Some(upstream) = self.upstreams.get_mut(at) else { return };
        upstream.sums.add(decision);
        upstream.calls.add(decision);
        upstream.failed_open += u64::from(FAILURES.contains(&decision.reason.as_str()));
    }

    /// An upstream's figures; empty when the day is over by `now`.
    pub fn of(&self, upstream: &str, now: f64) -> Day {
        let found = self.upstreams.iter().find(|one| one.name == upstream && clock::day(now) <= self.day);
        found.map_or_else(Day::default, |one| Day {
            arms: one.sums.arms(),
            recall: one.calls.recall(),
            failed_open: one.failed_open,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_day_begins_at_nothing() {
        let mut today = Today::default();
        let one = |ts: f64, reason: &str| Decision {
            ts,
            upstream: "kimi".into(),
            arm: "bypass".into(),
            reason: reason.into(),
            ..Decision::default()
        };
        today.add(&one(86_400.0, "deadline"));
        today.add(&one(86_401.0, "no_tools"));
        let day = today.of("kimi", 86_402.0);
        assert_eq!((day.arms[0].requests, day.failed_open), (2, 1));
        assert!(today.of("kimi", 172_800.0).arms.is_empty(), "midnight has passed");
        assert!(today.of("gemini", 86_402.0).arms.is_empty());
        today.add(&one(172_800.0, ""));
        today.add(&one(172_799.0, ""));
        assert_eq!(today.of("kimi", 172_801.0).arms[0].requests, 2);
    }
}
