//! What tokens cost. NOT what was used.

use globset::{Glob, GlobMatcher};

use super::read::{self, Section};

/// `[prices]`: USD per million tokens by model, exact names before globs, each in the order of the file; what is built
/// in comes last.
#[derive(Debug, Clone)]
pub struct Prices {
    entries: Vec<(String, Option<GlobMatcher>, Price)>,
}

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub cached_input: f64,
    pub output: f64,
}

const BUILTIN: [(&str, Price); 1] = [("kimi-k3", Price { input: 3.00, cached_input: 0.30, output: 15.00 })];

pub(super) const BUILTIN_NAMES: [&str; 1] = [BUILTIN[0].0];

impl Default for Prices {
    fn default() -> Self {
        let entry = |(name, price): (&str, Price)| (name.to_owned(), matcher(name).ok(), price);
        Self { entries: BUILTIN.into_iter().map(entry).collect() }
    }
}

impl Prices {
    /// What this model costs; `None`: nobody said.
    pub fn find(&self, model: &str) -> Option<Price> {
        let exact = self.entries.iter().find(|(name, ..)| name == model);
        let glob = || self.entries.iter().find(|(_, glob, _)| glob.as_ref().is_some_and(|glob| glob.is_match(model)));
        exact.or_else(glob).map(|(.., price)| *price)
    }

    pub(super) fn read(sections: Vec<(String, Section<'_>)>) -> Self {
        let mut entries = Vec::new();
        for (name, mut section) in sections {
            let known = BUILTIN.iter().find(|(builtin, _)| *builtin == name).map(|(_, price)| *price);
            let mut input = known.map(|price| price.input);
            let mut cached_input = known.map(|price| price.cached_input);
            let mut output = known.map(|price| price.output);
            section.take("input", &mut input, |node| read::number(node).map(Some));
            section.take("cached_input", &mut cached_input, |node| read::number(node).map(Some));
            section.take("output", &mut output, |node| read::number(node).map(Some));
            for (key, price) in [("input", input), ("output", output)] {
                if price.is_none() && !section.has(key) {
                    section.report(key, "must be given, in USD per million tokens");
                }
            }
            let glob = matcher(&name);
            if let Err(text) = &glob {
                section.report("", text.clone());
            }
            section.finish();
            if let (Ok(glob), Some(input), Some(output)) = (glob, input, output) {
                entries.push((name, Some(glob), Price { input, cached_input: cached_input.unwrap_or(input), output }));
            }
        }
        entries.extend(Self::default().entries);
        Self { entries }
    }
}

fn matcher(name: &str) -> Result<GlobMatcher, String> {
    match Glob::new(name) {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(format!("`{name}` is not a glob: {}", error.kind())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_builtin_ones_only() {
        let prices = Prices::default();
        assert_eq!(prices.find("kimi-k3").map(|price| price.input), Some(3.0));
        assert_eq!(prices.find("kimi-k2.6"), None);
        assert_eq!(prices.entries.len(), BUILTIN_NAMES.len());
    }
}
