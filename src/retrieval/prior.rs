//! What speaks for a tool besides the message: its tier, its cost, its latency, its past successes on messages like
//! this one. NOT where successes are kept or how they are learnt.
//!
//! A prior breaks ties. All of them are bounded, in units of the roster's spread (see [`super::index`]), so a tool that
//! leads by more than their sum cannot be pushed out: wrong priors cost a place among near-equals and bury nothing. With
//! three past successes a tool 83.7 % of 21 sets have their tool within the top 12, without 76.5 %, with ten wrong ones a
//! tool 76.1 % (a prototype's figures, from the same sets' requests: an upper view).

use super::matrix::product;

/// What a catalog says of a tool, as far as it changes its place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Standing {
    pub tier: Tier,
    /// In any unit, the same for all tools; 0: not said.
    pub cost: f32,
    /// In any unit, the same for all tools; 0: not said.
    pub latency: f32,
}

/// How much harm a call can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Also where nothing is said.
    #[default]
    Safe,
    Write,
    Danger,
}

/// What each tool's standing adds to its score, in their order: zero or less, at least -([`DANGER`] + [`COST`] +
/// [`LATENCY`]).
pub fn standings(tools: &[Standing]) -> Vec<f32> {
    let most = |of: fn(&Standing) -> f32| tools.iter().map(of).filter(|n| n.is_finite()).fold(0.0, f32::max);
    let (most_cost, most_latency) = (most(|tool| tool.cost), most(|tool| tool.latency));
    let share = |part: f32, most: f32| if most > 0.0 && part > 0.0 { (part / most).min(1.0) } else { 0.0 };
    tools
        .iter()
        .map(|tool| {
            let tier = match tool.tier {
                Tier::Safe => 0.0,
                Tier::Write => WRITE,
                Tier::Danger => DANGER,
            };
            -tier - COST * share(tool.cost, most_cost) - LATENCY * share(tool.latency, most_latency)
        })
        .collect()
}

/// A message on which a tool succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    /// The message's vector less the mean of the bank, at unit length.
    pub vector: Vec<f32>,
    /// What time has left of it; 0 to 1.
    pub weight: f32,
}

/// What a tool's past successes add to its score: 0 to [`HISTORY`]. `message`: made by [`centred`], as the successes'.
pub fn history(message: &[f32], successes: &[Success]) -> f32 {
    let likeness = |success: &Success| {
        let likeness = (product(message, &success.vector) - UNLIKE) * success.weight;
        if likeness.is_finite() { likeness.clamp(0.0, 1.0) } else { 0.0 }
    };
    let sum: f32 = successes.iter().map(likeness).sum();
    HISTORY * sum / (sum + HALF)
}

/// A message's vector less the mean of the bank (of phrases without content), at unit length: what all messages share
/// makes no two of them alike. `None`: it is nothing but that.
pub fn centred(vector: &[f32], bank: &[Vec<f32>]) -> Option<Vec<f32>> {
    let mut out = vector.to_vec();
    for phrase in bank.iter().filter(|phrase| phrase.len() == vector.len()) {
        for (number, mean) in out.iter_mut().zip(phrase) {
            *number -= mean / bank.len() as f32;
        }
    }
    let length = product(&out, &out).sqrt();
    if !length.is_finite() || length < 1e-6 {
        return None;
    }
    out.iter_mut().for_each(|number| *number /= length);
    Some(out)
}

/// More than [`COST`] and [`LATENCY`] together: on an equal match a danger tool stands behind its safe sibling however
/// dear and slow that is.
pub const DANGER: f32 = 0.25;

/// A tool that changes things stands behind one that reads on an equal match.
pub const WRITE: f32 = 0.05;

/// Of the dearest tool; others in proportion.
pub const COST: f32 = 0.1;

/// Of the slowest tool; others in proportion.
pub const LATENCY: f32 = 0.1;

/// The most that history adds. With 1 / 3 / 10 successes per tool the tool is within the top 12 in 80.1 / 83.7 / 86.8 %
/// where it was in 76.5 % without (21 sets); with 10 wrong ones per tool in 76.1 %. At 2 the gain is 92.2 % and the
/// harm 75.2 %; at 1 a tool that leads the thirteenth by more than 1 was never pushed out (0 of 1,795).
pub const HISTORY: f32 = 1.0;

/// Messages less alike than this say nothing about each other.
const UNLIKE: f32 = 0.3;

/// Likeness at which half of [`HISTORY`] is reached.
const HALF: f32 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tool(tier: Tier, cost: f32, latency: f32) -> Standing {
        Standing { tier, cost, latency }
    }

    #[test]
    fn a_danger_tool_never_outranks_a_safe_sibling_on_an_equal_match() {
        let added =
            standings(&[tool(Tier::Danger, 0.0, 0.0), tool(Tier::Safe, 9.0, 900.0), tool(Tier::Write, 0.0, 0.0)]);
        assert!(added[0] < added[1], "{added:?}");
        assert!(added[0] < added[2], "{added:?}");
        assert_eq!(standings(&[Standing::default(); 2]), [0.0, 0.0], "nothing said, nothing changed");
    }

    #[test]
    fn history_grows_to_its_bound_and_forgets() {
        let message = [1.0, 0.0];
        let of = |count: usize, weight| history(&message, &vec![Success { vector: vec![1.0, 0.0], weight }; count]);
        assert_eq!(of(0, 1.0), 0.0);
        assert!(of(1, 1.0) > 0.5 && of(1, 1.0) < of(3, 1.0) && of(1_000_000, 1.0) <= HISTORY);
        assert!(of(1, 0.1) < of(1, 1.0));
        assert_eq!(history(&message, &[Success { vector: vec![0.2, 0.98], weight: 1.0 }]), 0.0, "too unlike");
    }

    #[test]
    fn what_all_messages_share_is_taken_away() {
        let bank = [vec![1.0, 0.0, 0.0]];
        let (a, b) = (centred(&[0.8, 0.6, 0.0], &bank).unwrap(), centred(&[0.8, 0.0, 0.6], &bank).unwrap());
        assert!(product(&a, &b) < 0.2);
        assert!((product(&a, &a) - 1.0).abs() < 1e-5);
        assert_eq!(centred(&[1.0, 0.0, 0.0], &bank), None);
        assert_eq!(centred(&[f32::NAN, 0.0, 0.0], &bank), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        /// Whatever a catalog and a history say: who leads by more than all priors together keeps leading.
        #[test]
        fn wrong_priors_bury_nothing(
            tools in proptest::collection::vec((0u8..3, any::<f32>(), any::<f32>()), 2..8),
            wrong in proptest::collection::vec((proptest::collection::vec(-1f32..1.0, 4), any::<f32>()), 0..20),
        ) {
            let tiers = [Tier::Safe, Tier::Write, Tier::Danger];
            let tools: Vec<Standing> = tools.iter().map(|(at, cost, latency)| tool(tiers[*at as usize], *cost, *latency)).collect();
            let added = standings(&tools);
            prop_assert!(added.iter().all(|n| (-(DANGER + COST + LATENCY + 1e-6)..=0.0).contains(n)), "{:?}", added);
            let successes: Vec<Success> = wrong.into_iter().map(|(vector, weight)| Success { vector, weight }).collect();
            let message = [0.5, 0.5, 0.5, 0.5];
            prop_assert!((0.0..=HISTORY).contains(&history(&message, &successes)));
        }
    }
}
