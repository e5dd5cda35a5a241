//! Decision records -> the requests that are played. What earlier records of a file said of a roster is remembered; nothing
//! else is. NOT what a policy makes of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::cost::cache::Segment;
use crate::cost::play::{Roster, Step, Tool};
use crate::decision::Decision;

/// Rosters in memory; of more, those that come back are read again from their next record, or not played.
const ROSTERS: usize = 512;

/// Reads records in the order of the log.
#[derive(Debug, Default)]
pub struct Reader {
    rosters: HashMap<String, Known>,
    /// Records that cannot be played, by why.
    pub passed: Passed,
}

/// Records that are not played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Passed {
    /// No tools in it, or its body was not read: every policy sends it as it is.
    pub untouched: u64,
    /// Its roster's sizes stand in no record of these files.
    pub roster_unknown: u64,
    /// The provider refused it, or nobody answered.
    pub failed: u64,
    /// Of models beyond the most that are told apart.
    pub models: u64,
}

#[derive(Debug)]
struct Known {
    roster: Arc<Roster>,
    ids: HashMap<String, u64>,
}

impl Reader {
    /// `None`: it is not played, and counted in [`Self::passed`].
    pub fn step(&mut self, decision: &Decision) -> Option<Step> {
        if decision.roster.hash.is_empty() || decision.turn == 0 {
            self.passed.untouched += 1;
            return None;
        }
        self.learn(decision);
        if decision.status >= 400 || decision.status == 0 {
            self.passed.failed += 1;
            return None;
        }
        let Some(known) = self.rosters.get(&decision.roster.hash) else {
            self.passed.roster_unknown += 1;
            return None;
        };
        let ids =
            |names: &mut dyn Iterator<Item = &str>| names.filter_map(|name| known.ids.get(name).copied()).collect();
        Some(Step {
            at: Duration::try_from_secs_f64(decision.ts).unwrap_or_default(),
            conversation: digest(&decision.conversation),
            begins_turn: decision.call == 1,
            history: decision.history_tokens,
            roster: Arc::clone(&known.roster),
            ranking: ids(&mut decision.selection.iter().map(|scored| scored.name.as_str())),
            selected: decision.selected,
            called: ids(&mut decision.called.iter().map(|called| called.name.as_str())),
            found: ids(&mut decision.discovered.iter().map(String::as_str)),
            in_vain: decision.searches.iter().filter(|search| *search != "found").count() as u64,
        })
    }

    fn learn(&mut self, decision: &Decision) {
        let roster = &decision.roster;
        let known = self.rosters.contains_key(&roster.hash);
        if roster.tool_tokens.is_empty() || known {
            return;
        }
        if self.rosters.len() >= ROSTERS {
            self.rosters.clear();
        }
        let mut tools: Vec<Tool> = Vec::with_capacity(roster.tool_tokens.len());
        let mut ids: HashMap<String, u64> = HashMap::new();
        for (place, tool) in roster.tool_tokens.iter().enumerate() {
            // Two of one name stay together, and so are one here; what has no name is itself.
            let twin = ids.get(&tool.name).and_then(|id| tools.iter_mut().find(|tool| tool.id == *id));
            match twin {
                Some(twin) => {
                    twin.tokens += tool.tokens;
                    twin.always |= tool.always;
                }
                None => {
                    let id = if tool.name.is_empty() { digest(&place.to_string()) } else { digest(&tool.name) };
                    let id = id ^ tool.tokens;
                    ids.insert(tool.name.clone(), id);
                    tools.push(Tool { id, tokens: tool.tokens, always: tool.always });
                }
            }
        }
        let find_tools = if roster.find_tools_tokens > 0 { roster.find_tools_tokens } else { FIND_TOOLS };
        self.rosters.insert(roster.hash.clone(), Known { roster: Arc::new(Roster { tools, find_tools }), ids });
    }
}

/// Tokens of the declaration of `find_tools` where a record does not say.
const FIND_TOOLS: u64 = 250;

fn digest(text: &str) -> u64 {
    Segment::new(text.as_bytes(), 0).hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roster_is_remembered_from_its_first_record() {
        let mut reader = Reader::default();
        let line = |more: &str| {
            let text =
                format!(r#"{{"ts":10.5,"conversation":"c","turn":1,"call":1,"status":200,"history_tokens":900,{more}"#);
            Decision::read(&text).unwrap()
        };
        let before = line(r#""roster":{"hash":"h"}}"#);
        assert!(reader.step(&before).is_none());
        let first = line(
            r#""roster":{"hash":"h","tool_tokens":[{"name":"a","tokens":5,"always":true},{"name":"b","tokens":7},
            {"name":"b","tokens":3}]},"selection":[{"name":"b","score":0.5},{"name":"gone","score":0.1}],
            "called":[{"name":"b","verdict":"bound"}],"searches":["found","nothing"]}"#,
        );
        let step = reader.step(&first).unwrap();
        assert_eq!(step.roster.tools.iter().map(|tool| tool.tokens).collect::<Vec<_>>(), [5, 10]);
        assert_eq!((step.ranking.len(), step.called.len(), step.in_vain), (1, 1, 1));
        assert_eq!((step.begins_turn, step.history, step.at), (true, 900, Duration::from_millis(10_500)));
        assert!(reader.step(&before).is_some());
        assert!(reader.step(&Decision::default()).is_none());
        assert_eq!(reader.passed, Passed { untouched: 1, roster_unknown: 1, failed: 0, models: 0 });
    }
}
