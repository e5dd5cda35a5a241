//! Prices by model: the built-in table (`config/prices.toml`) and what a user puts before it. NOT how a configuration
//! file says them, NOT what was used.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use super::cache::Rules;

/// USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub cached_input: f64,
    pub output: f64,
}

/// What a provider bills.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Billed {
    /// All input tokens, cached ones included.
    pub prompt: u64,
    pub cached: u64,
    /// Output tokens, thoughts included.
    pub completion: u64,
}

impl Price {
    /// USD.
    pub fn cost(&self, billed: Billed) -> f64 {
        let cached = billed.cached.min(billed.prompt);
        let fresh = billed.prompt - cached;
        let micro = fresh as f64 * self.input + cached as f64 * self.cached_input;
        (micro + billed.completion as f64 * self.output) / 1e6
    }

    /// What a cached input token costs of a fresh one; 1 when input is free.
    pub fn ratio(&self) -> f64 {
        if self.input > 0.0 { self.cached_input / self.input } else { 1.0 }
    }
}

/// What is said of the models that one glob matches.
#[derive(Debug, Clone)]
pub struct Row {
    /// A glob, compared without case.
    pub models: String,
    pub price: Price,
    pub cache: Rules,
    pub source: String,
    /// When it was read, such as `2026-11`.
    pub date: String,
    matcher: GlobMatcher,
}

impl Row {
    /// Errors: `models` is no glob, in words.
    pub fn new(models: &str, price: Price, cache: Rules) -> Result<Self, String> {
        let glob = GlobBuilder::new(models).case_insensitive(true).build();
        let glob = glob.map_err(|error| format!("`{models}` is not a glob: {}", error.kind()))?;
        let (source, date) = ("configuration".to_owned(), String::new());
        Ok(Self { models: models.to_owned(), price, cache, source, date, matcher: glob.compile_matcher() })
    }

    /// A name beats every glob; of two globs, the one that spells more of the name.
    fn specific(&self) -> (bool, usize) {
        let wild = ['*', '?', '[', '{'];
        (!self.models.contains(wild), self.models.chars().filter(|c| !wild.contains(c)).count())
    }
}

/// Two tables: the user's rows stand before every built-in one.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    own: Vec<Row>,
}

impl Prices {
    /// `own`: the user's.
    pub fn new(own: Vec<Row>) -> Self {
        Self { own }
    }

    /// What this model costs; `None`: nobody said.
    pub fn find(&self, model: &str) -> Option<Price> {
        self.row(model).map(|row| row.price)
    }

    /// `model` as a request names it: `models/gemini-2.5-pro` and `moonshotai/kimi-k3` are found, too.
    pub fn row(&self, model: &str) -> Option<&Row> {
        let bare = model.rsplit_once('/').map(|(_, bare)| bare);
        [Some(model), bare]
            .into_iter()
            .flatten()
            .find_map(|name| best(&self.own, name).or_else(|| best(&BUILTIN, name)))
    }

    /// How this model's prompts are cached; the usual way for one that nobody knows.
    pub fn cache(&self, model: &str) -> Rules {
        self.row(model).map_or_else(Rules::default, |row| row.cache)
    }
}

/// The table of `config/prices.toml`, in its order.
pub fn builtin() -> &'static [Row] {
    &BUILTIN
}

/// Of rows that are equally specific, the first.
fn best<'a>(rows: &'a [Row], model: &str) -> Option<&'a Row> {
    let matching = rows.iter().rev().filter(|row| row.models == model || row.matcher.is_match(model));
    matching.max_by_key(|row| row.specific())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    price: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    models: String,
    input: f64,
    cached_input: f64,
    output: f64,
    #[serde(default)]
    minimum_prefix: u64,
    source: String,
    date: String,
}

/// A table that cannot be read would be empty; a test reads it.
static BUILTIN: LazyLock<Vec<Row>> =
    LazyLock::new(|| read(include_str!("../../config/prices.toml")).unwrap_or_default());

fn read(text: &str) -> Result<Vec<Row>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let row = |entry: Entry| {
        let Entry { models, input, cached_input, output, minimum_prefix, source, date } = entry;
        let cache = Rules { minimum: minimum_prefix, ..Rules::default() };
        Ok(Row { source, date, ..Row::new(&models, Price { input, cached_input, output }, cache)? })
    };
    file.price.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_is_read_and_says_where_it_is_from() {
        let rows = read(include_str!("../../config/prices.toml")).unwrap();
        assert_eq!(rows.len(), builtin().len());
        for row in &rows {
            assert!(row.source.len() > 5 && row.date.starts_with("20"), "{row:?}");
            let Price { input, cached_input, output } = row.price;
            assert!(0.0 < cached_input && cached_input < input && input < output, "{row:?}");
        }
    }

    #[test]
    fn the_most_specific_glob_wins() {
        let input = |model: &str| Prices::default().find(model).map(|price| price.input);
        assert_eq!(input("kimi-k3"), Some(3.0));
        assert_eq!(input("Kimi-K3-0905"), Some(3.0));
        assert_eq!(input("kimi-k3.1-pro"), Some(2.0));
        assert_eq!(input("kimi-k3.1-pro-highspeed"), Some(4.0));
        assert_eq!(input("moonshotai/kimi-k2.6"), Some(0.95));
        assert_eq!(input("models/gemini-2.5-flash-lite"), Some(0.1));
        assert_eq!(input("gemini-2.5-flash"), Some(0.3));
        assert_eq!(input("gemini-3.1-pro-preview"), Some(2.0));
        assert_eq!(input("gemini-3-flash-preview"), Some(0.5));
        assert_eq!(input("gemini-3.1-flash-lite"), Some(0.25));
        assert_eq!(input("gemini-3.5-flash"), Some(1.5));
        assert_eq!(input("gpt-9"), None);
        assert_eq!(Prices::default().cache("gemini-3-pro").minimum, 4096);
        assert_eq!(Prices::default().cache("gpt-9"), Rules::default());
    }

    #[test]
    fn rows_of_the_user_stand_before_the_table() {
        let row = |models: &str, input| {
            Row::new(models, Price { input, cached_input: input, output: input }, Rules::default()).unwrap()
        };
        let prices = Prices::new(vec![row("kimi-*", 9.0), row("kimi-k3", 8.0), row("kimi-k*", 7.0)]);
        assert_eq!(prices.find("kimi-k3").map(|price| price.input), Some(8.0));
        assert_eq!(prices.find("kimi-k2.6").map(|price| price.input), Some(7.0));
        assert_eq!(prices.find("gemini-2.5-pro").map(|price| price.input), Some(1.25));
        assert!(Row::new("[", prices.find("kimi-k3").unwrap(), Rules::default()).is_err());
    }

    #[test]
    fn cached_tokens_cost_less_and_are_part_of_the_prompt() {
        let price = Price { input: 3.0, cached_input: 0.3, output: 15.0 };
        let billed = Billed { prompt: 1_000_000, cached: 500_000, completion: 100_000 };
        assert!((price.cost(billed) - (1.5 + 0.15 + 1.5)).abs() < 1e-9);
        assert!((price.ratio() - 0.1).abs() < 1e-9);
        let odd = Billed { prompt: 10, cached: 20, completion: 0 };
        assert!((price.cost(odd) - 3e-6).abs() < 1e-12);
    }
}
