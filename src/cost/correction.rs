//! The provider's tokens for one of ours: learnt, per model, from requests that were sent in full, and never better than
//! its error says. NOT counting.

use std::collections::HashMap;

use serde::Serialize;

/// Models that are learnt.
const MODELS: usize = 100;
/// Requests before a factor is used.
const ENOUGH: u64 = 10;

/// What is known of each model.
#[derive(Debug, Default)]
pub struct Corrections {
    models: HashMap<String, Sums>,
}

/// What is known of one model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correction {
    /// Reported tokens for one that was estimated.
    pub factor: f64,
    /// Of a corrected estimate: root mean square, as a part of the mean prompt.
    pub error: f64,
    pub requests: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    requests: u64,
    reported: f64,
    estimated: f64,
    reported_squares: f64,
    estimated_squares: f64,
    products: f64,
}

impl Corrections {
    /// A request that was sent in full: its prompt as reported and as estimated.
    pub fn learn(&mut self, model: &str, reported: u64, estimated: u64) {
        if reported == 0 || estimated == 0 {
            return;
        }
        if self.models.len() >= MODELS && !self.models.contains_key(model) {
            return;
        }
        let sums = self.models.entry(model.to_owned()).or_default();
        let (reported, estimated) = (reported as f64, estimated as f64);
        sums.requests += 1;
        sums.reported += reported;
        sums.estimated += estimated;
        sums.reported_squares += reported * reported;
        sums.estimated_squares += estimated * estimated;
        sums.products += reported * estimated;
    }

    /// What is known of one model.
    pub fn of(&self, model: &str) -> Option<Correction> {
        self.models.get(model).map(Sums::correction)
    }

    /// By what to multiply an estimate: 1 until enough is known.
    pub fn factor(&self, model: &str) -> f64 {
        self.of(model).filter(Correction::is_settled).map_or(1.0, |correction| correction.factor)
    }

    /// All that is known, by model.
    pub fn known(&self) -> Vec<(String, Correction)> {
        let mut known: Vec<_> = self.models.iter().map(|(model, sums)| (model.clone(), sums.correction())).collect();
        known.sort_by(|a, b| a.0.cmp(&b.0));
        known
    }
}

impl Correction {
    /// Is it used?
    pub fn is_settled(&self) -> bool {
        self.requests >= ENOUGH
    }

    /// `1.08 ± 2.1 % of 412 requests`, and that it is not used yet.
    pub fn said(&self) -> String {
        let few = if self.is_settled() { "" } else { ", too few to be used" };
        format!("{:.3} \u{b1} {:.1} %, {} requests{few}", self.factor, self.error * 100.0, self.requests)
    }
}

impl Sums {
    fn correction(&self) -> Correction {
        let factor = self.reported / self.estimated;
        let squares = self.reported_squares - 2.0 * factor * self.products + factor * factor * self.estimated_squares;
        let count = self.requests as f64;
        // Rounding may leave a sum of squares below nothing.
        let error = (squares / count).max(0.0).sqrt() / (self.reported / count);
        Correction { factor, error, requests: self.requests }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_learnt_with_its_error_and_used_when_enough_is_known() {
        let mut corrections = Corrections::default();
        for request in 0..9 {
            corrections.learn("m", 1100 + request % 2, 1000);
        }
        assert!((corrections.factor("m") - 1.0).abs() < 1e-9, "too few");
        corrections.learn("m", 1101, 1000);
        assert!((corrections.factor("m") - 1.1005).abs() < 1e-9);
        let (_, known) = corrections.known().remove(0);
        assert_eq!((known.requests, known.is_settled(), corrections.of("m")), (10, true, Some(known)));
        assert_eq!(known.said(), "1.101 \u{b1} 0.0 %, 10 requests");
        assert!((known.error - 0.5 / 1100.5).abs() < 1e-6, "{}", known.error);
        assert!((corrections.factor("another") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn hostile_models_are_not_all_remembered() {
        let mut corrections = Corrections::default();
        for model in 0..1000 {
            corrections.learn(&format!("m{model}"), 2, 1);
        }
        assert_eq!(corrections.known().len(), MODELS);
    }
}
