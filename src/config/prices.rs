//! `[prices]`: what the user says tokens cost, before the built-in table. NOT what was used.

use super::read::{self, Section};
use crate::cost::prices::{self, Price, Prices, Row};

/// Names that variables may speak of though no file does.
pub(super) fn builtin_names() -> Vec<&'static str> {
    prices::builtin().iter().map(|row| row.models.as_str()).collect()
}

/// What a section leaves out of a model that is known is as it is known.
pub(super) fn read(sections: Vec<(String, Section<'_>)>) -> Prices {
    let builtin = Prices::default();
    let mut own = Vec::new();
    for (name, mut section) in sections {
        let known = builtin.find(&name);
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
        let price = Price {
            input: input.unwrap_or_default(),
            cached_input: cached_input.or(input).unwrap_or_default(),
            output: output.unwrap_or_default(),
        };
        match Row::new(&name, price, builtin.cache(&name)) {
            Ok(row) => own.push(row),
            Err(text) => section.report("", text),
        }
        section.finish();
    }
    Prices::new(own)
}
