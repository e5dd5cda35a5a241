//! What to change: k, and what the catalog should say of which tool, with the TOML to do so. NOT done for anybody: the
//! words are the roster's owner's.

use std::fmt::Write;

use serde::Serialize;

use super::recall::{Missed, Recall, Verdict};
use super::tally::{Tally, Use};

/// Advice beyond this is noise.
const MOST: usize = 12;
/// A tool with so large a share of all calls, and with misses, belongs to the core.
const CORE_SHARE: f64 = 0.05;
/// Tools with misses that are few enough to look at each.
const FEW: usize = 5;
/// Misses before one is a pattern.
const PATTERN: u64 = 3;
/// Turns, and the share of them, in which a tool that nobody calls is chosen before it is said to pull others' queries.
const CHOSEN: u64 = 50;
const CHOSEN_SHARE: f64 = 0.25;

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The tool, or `max_retrieved_tools`.
    pub about: String,
    pub why: String,
    /// Configuration or catalog; empty: words that only a person can find.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub toml: String,
}

/// Most telling first.
pub fn advice(tally: &Tally, recall: Option<&Recall>) -> Vec<Advice> {
    let mut advice = Vec::new();
    if let Some(recall) = recall {
        advice.extend(of_k(recall));
        let larger =
            matches!(recall.verdict, Verdict::RaiseK | Verdict::SetK).then_some(recall.recommended_k).flatten();
        let deepest = larger.unwrap_or_default().max(recall.k.unwrap_or(recall.selected as usize));
        advice.extend(recall.missed.iter().filter_map(|missed| of_missed(tally, recall, missed, deepest)));
    }
    advice.extend(searched(tally));
    advice.extend(pulling(tally));
    advice.truncate(MOST);
    advice
}

fn of_k(recall: &Recall) -> Option<Advice> {
    let k = recall.recommended_k?;
    let why = match (recall.verdict, recall.k) {
        (Verdict::RaiseK, Some(now)) => {
            format!("at {k} at least 99 % of the calls would have been bound, at {now} not")
        }
        (Verdict::SetK, _) => {
            format!("at {k} for every message at least 99 % of the calls would have been bound, {} not", recall.width())
        }
        (Verdict::Promote, Some(now)) if k < now => {
            format!("{k} would have bound 99 % of the calls too, with {} tools less a message", now - k)
        }
        (Verdict::Promote, None) if (k as f64) < recall.selected => {
            let less = recall.selected - k as f64;
            format!("{k} would have bound 99 % of the calls too, with {less:.1} tools less a message")
        }
        _ => return None,
    };
    Some(Advice { about: "max_retrieved_tools".into(), why, toml: format!("[narrow]\nmax_retrieved_tools = {k}\n") })
}

fn of_missed(tally: &Tally, recall: &Recall, missed: &Missed, deepest: usize) -> Option<Advice> {
    let tool = missed.tool.as_str();
    let calls = recall.calls + recall.core_calls;
    if missed.misses >= PATTERN && missed.calls as f64 >= CORE_SHARE * calls as f64 {
        let cost = tally.tools.get(tool).map_or(0, |known| known.tokens);
        let cost = if cost > 0 { format!(", for about {cost} tokens a request") } else { String::new() };
        let share = missed.calls as f64 / calls as f64 * 100.0;
        let why =
            format!("{share:.0} % of all calls are of it and {} were missed: never withhold it{cost}", missed.misses);
        return Some(entry(tool, why, "always_on = true"));
    }
    // The larger k binds it; and where many are missed, one miss is an accident.
    if missed.median_rank.is_some_and(|rank| rank <= deepest) || (missed.misses == 1 && recall.missed.len() > FEW) {
        return None;
    }
    let place = missed.median_rank.map_or_else(|| "below rank 64".to_owned(), |rank| format!("at rank {rank}"));
    let messages: Vec<String> = missed.examples.iter().take(2).map(|example| example.shown()).collect();
    let messages = if messages.is_empty() { String::new() } else { format!(", as in {}", messages.join(" and ")) };
    let why = format!(
        "missed {} of {} times, {place}{messages}: its description lacks the words that users have for it",
        missed.misses, missed.calls
    );
    Some(entry(tool, why, "keywords = [\"…\"]   # or search_text = \"…\": the words of those messages"))
}

/// Narrowed turns that had to search for a tool time and again.
fn searched(tally: &Tally) -> Vec<Advice> {
    let needed = |used: &Use| used.searched + used.unseen;
    let mut found: Vec<(&str, &Use)> = tally
        .tools
        .sorted()
        .into_iter()
        .filter(|(_, used)| needed(used) >= PATTERN && 4 * needed(used) >= used.called)
        .collect();
    found.sort_by_key(|(_, used)| std::cmp::Reverse(needed(used)));
    let said = |(tool, used): (&str, &Use)| {
        let why = format!(
            "while narrowed, {} of its {} calls needed a search or came unseen: an extra call of the model each",
            needed(used),
            used.called
        );
        entry(tool, why, "keywords = [\"…\"]   # or always_on = true")
    };
    found.into_iter().map(said).collect()
}

/// Tools that are chosen all the time and called never.
fn pulling(tally: &Tally) -> Vec<Advice> {
    let least = CHOSEN.max((CHOSEN_SHARE * tally.turns as f64) as u64);
    let mut idle: Vec<(&str, &Use)> = tally
        .tools
        .sorted()
        .into_iter()
        .filter(|(_, used)| used.chosen >= least && used.called == 0 && !used.always)
        .collect();
    idle.sort_by_key(|(_, used)| std::cmp::Reverse(used.chosen));
    let said = |(tool, used): (&str, &Use)| {
        let why = format!(
            "chosen in {} of {} turns and never called: its description pulls messages that are not meant for it (or it \
             is always_on without need)",
            used.chosen, tally.turns
        );
        entry(tool, why, "search_text = \"…\"   # narrower than the description")
    };
    idle.into_iter().map(said).collect()
}

fn entry(tool: &str, why: String, line: &str) -> Advice {
    let mut toml = String::from("[[tool]]\nname = ");
    let _ = writeln!(toml, "{}\n{line}", toml::Value::String(tool.to_owned()));
    Advice { about: tool.to_owned(), why, toml }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Called, Decision, Query, Scored};

    fn shadow(tool: &str, rank: Option<usize>, verdict: &str) -> Decision {
        Decision {
            ts: 1.0,
            arm: "shadow".into(),
            query: Some(Query { hash: "abcd".into(), ..Query::default() }),
            selection: vec![Scored::default()],
            bound: vec!["idle".into()],
            called: vec![Called { name: tool.into(), verdict: verdict.into(), rank }],
            ..Decision::default()
        }
    }

    #[test]
    fn each_pattern_gets_its_change() {
        let mut tally = Tally::new(None);
        for _ in 0..300 {
            tally.add(&shadow("often", Some(2), "bound"));
        }
        for _ in 0..30 {
            tally.add(&shadow("frequent\"\n", Some(15), "withheld"));
        }
        tally.add(&shadow("lost", Some(80), "withheld"));
        for _ in 0..4 {
            let mut narrowed = shadow("hidden", Some(14), "discovered");
            narrowed.arm = "narrow".into();
            tally.add(&narrowed);
        }
        let recall = tally.calls.recall();
        let advice = advice(&tally, recall.as_ref());
        let about: Vec<&str> = advice.iter().map(|one| one.about.as_str()).collect();
        assert_eq!(about, ["max_retrieved_tools", "frequent\"\n", "lost", "hidden", "idle"]);
        assert!(advice[0].toml.contains("max_retrieved_tools = 15"));
        assert!(advice[1].why.starts_with("9 % of all calls"), "{}", advice[1].why);
        assert!(advice[2].why.contains("below rank 64, as in message abcd"), "{}", advice[2].why);
        for one in &advice {
            assert!(one.toml.parse::<toml::Table>().is_ok(), "{}", one.toml);
        }
    }
}
