//! Label values that come from outside: names may be hostile, and each makes a series. NOT which series there are.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// Distinct values of a label, before `other`.
const VALUES: usize = 100;
/// What the others are called.
pub(super) const OTHER: &str = "other";
/// A value is cut here.
const VALUE_BYTES: usize = 128;

/// The values of one label so far.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashSet<String>>);

impl Names {
    /// `value`, or `other` once there are too many.
    pub(super) fn bounded(&self, value: &str) -> String {
        let mut end = value.len().min(VALUE_BYTES);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        let value = value.get(..end).unwrap_or_default();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.contains(value) {
            if seen.len() >= VALUES {
                return OTHER.to_owned();
            }
            seen.insert(value.to_owned());
        }
        value.to_owned()
    }
}
