//! A map by names from outside that cannot grow beyond its cap. NOT what is counted.

use std::collections::HashMap;

/// Where names beyond the cap are counted.
pub const OTHER: &str = "(other)";
/// A longer name is cut: it may be hostile.
const NAME_BYTES: usize = 128;

/// The first names, then [`OTHER`].
#[derive(Debug)]
pub struct Names<T> {
    most: usize,
    known: HashMap<Box<str>, T>,
}

impl<T: Default> Names<T> {
    pub fn new(most: usize) -> Self {
        Self { most, known: HashMap::new() }
    }

    /// What belongs to `name`.
    pub fn of(&mut self, name: &str) -> &mut T {
        let name = shortened(name);
        let is_known = self.known.contains_key(name) || self.known.len() < self.most;
        let name = if is_known { name } else { OTHER };
        self.known.entry(name.into()).or_default()
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        self.known.get(shortened(name))
    }

    /// All of them, by name.
    pub fn sorted(&self) -> Vec<(&str, &T)> {
        let mut all: Vec<(&str, &T)> = self.known.iter().map(|(name, value)| (&**name, value)).collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }
}

impl Names<u64> {
    /// Counts one.
    pub fn count(&mut self, name: &str) {
        match self.known.get_mut(shortened(name)) {
            Some(count) => *count += 1,
            None => *self.of(name) += 1,
        }
    }

    /// Most first.
    pub fn ranked(&self) -> Vec<(String, u64)> {
        let mut all: Vec<(String, u64)> =
            self.sorted().into_iter().map(|(name, count)| (name.into(), *count)).collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}

fn shortened(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_cap_are_one() {
        let mut names = Names::<u64>::new(2);
        for name in ["a", "b", "c", "d", "a", &"é".repeat(500), &"b".repeat(500)] {
            names.count(name);
        }
        assert_eq!(names.ranked(), [(OTHER.to_owned(), 4), ("a".to_owned(), 2), ("b".to_owned(), 1)]);
    }
}
