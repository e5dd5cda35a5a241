//! All of a roster, where that is more than the provider takes: only a catalog that a request
//! refers to can be, since nobody could have sent it. NOT the agent's own roster: however large, it
//! is relayed as it is.

use std::ops::Range;

use super::roster::Roster;

/// The tools that go, in their order; `None`: all. `lent`: which are the catalog's. `must`: names that the request
/// cannot do without (called, chosen, asked for); `most`: what the provider takes.
///
/// The agent's own and those always bound, then those of `must`, then the others as they stand: what a history calls
/// and nobody declares would be refused, and of the rest the catalog's order is all that is known.
pub fn fitting<'n>(
    roster: &Roster,
    lent: &Range<usize>,
    must: impl IntoIterator<Item = &'n str>,
    most: usize,
) -> Option<Vec<usize>> {
    if roster.len() <= most {
        return None;
    }
    let own = (0..roster.len()).filter(|tool| !lent.contains(tool));
    let must = must.into_iter().flat_map(|name| roster.named(name)).copied();
    let always = lent.clone().filter(|tool| roster.always(*tool));
    let mut goes = vec![false; roster.len()];
    let mut count = 0;
    for tool in own.clone().chain(must).chain(always).chain(lent.clone()) {
        let is_own = !lent.contains(&tool);
        if let Some(goes) = goes.get_mut(tool).filter(|goes| !**goes && (is_own || count < most)) {
            *goes = true;
            count += 1;
        }
    }
    Some(goes.iter().enumerate().filter(|(_, goes)| **goes).map(|(tool, _)| tool).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::policy::{test_policy, test_roster};

    #[test]
    fn what_must_go_goes_first_and_the_rest_in_order() {
        // Twelve tools, the first of them core.
        let roster = test_roster(&test_policy());
        assert_eq!(fitting(&roster, &(0..12), [], 12), None);
        assert_eq!(fitting(&roster, &(0..12), ["t9", "t9", "nobody"], 4), Some(vec![0, 1, 2, 9]));
        assert_eq!(fitting(&roster, &(3..12), ["t11"], 5), Some(vec![0, 1, 2, 3, 11]), "the agent's own are sent");
        assert_eq!(fitting(&roster, &(6..12), ["t11"], 3), Some(vec![0, 1, 2, 3, 4, 5]), "however many");
    }
}
