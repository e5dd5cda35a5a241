//! Traffic by model, from logs or made up, played as it is read. NOT what it comes to (`findings`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::captured::Captured;
use super::ledger::{Ledger, Terms};
use super::read::{Passed, Reader};
use super::synthetic::Synthetic;
use crate::cost::cache::Rules;
use crate::cost::play::Limits;
use crate::cost::policy::Able;
use crate::cost::prices::{Price, Prices};
use crate::decision::Decision;
use crate::retrieval::embedder::EmbedError;

/// Models told apart; more are counted and not played: eight policies are simulated for each.
const MODELS: usize = 16;
/// A longer line is neither a record nor a request that a provider takes.
const LINE_BYTES: u64 = 64 << 20;

/// Why traffic cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("{path}: {error}")]
    Read { path: String, error: io::Error },
    #[error("captured requests must be ranked: {0}")]
    Embed(#[from] EmbedError),
}

/// What is known beforehand.
pub struct Settings {
    pub prices: Prices,
    pub limits: Limits,
    /// Does the provider cache? `false` shows what a cold cache would cost.
    pub cached: bool,
    /// How long it remembers; `None`: as the price table says.
    pub life: Option<std::time::Duration>,
    /// Which models take declarations of tools in messages.
    pub append: Box<dyn Fn(&str) -> bool>,
}

/// The models seen so far.
pub struct Models {
    settings: Settings,
    reader: Reader,
    pub ledgers: BTreeMap<String, Ledger>,
    /// Lines that are no record.
    pub unreadable: u64,
}

impl Models {
    pub fn new(settings: Settings) -> Self {
        Self { settings, reader: Reader::default(), ledgers: BTreeMap::new(), unreadable: 0 }
    }

    /// Reads a file to its end: records, or bodies of requests. `read`: told of bytes as they are read.
    pub async fn log(
        &mut self,
        path: &Path,
        captured: &mut Captured,
        read: &mut dyn FnMut(u64),
    ) -> Result<(), ReplayError> {
        let failed = |error| ReplayError::Read { path: path.display().to_string(), error };
        let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(failed)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut part = io::Read::take(&mut file, LINE_BYTES);
            let taken = part.read_until(b'\n', &mut line).map_err(failed)?;
            if taken == 0 {
                break;
            }
            read(taken as u64);
            self.line(&line, captured).await?;
        }
        captured.finish(&mut |decision| self.add(decision));
        Ok(())
    }

    /// One record. The tail of a line that was too long is no record either, and counted.
    async fn line(&mut self, line: &[u8], captured: &mut Captured) -> Result<(), ReplayError> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        match serde_json::from_slice::<Decision>(line) {
            Ok(decision) if decision.ts > 0.0 => self.add(&decision),
            _ => {
                let known = captured.line(line, &mut |decision| self.add(decision)).await?;
                self.unreadable += u64::from(!known);
            }
        }
        Ok(())
    }

    pub fn add(&mut self, decision: &Decision) {
        let Some(step) = self.reader.step(decision) else { return };
        match self.ledger(&decision.model) {
            Some(ledger) => ledger.add(&step, decision.usage),
            None => self.reader.passed.models += 1,
        }
    }

    /// Made-up traffic. Its ratio is the price, at 1 USD per million tokens, unless `model` has one.
    pub fn synthetic(&mut self, synthetic: &Synthetic, model: Option<&str>) {
        let ratio = synthetic.traffic.ratio;
        let price = Price { input: 1.0, cached_input: ratio, output: 5.0 };
        let mut terms = match model {
            Some(model) => self.terms(model),
            None => Terms { price: Some(price), ..self.terms("") },
        };
        terms.cached = ratio < 1.0;
        if model.is_none() {
            terms.able = Able { append: true, dispatch: true };
        }
        let mut ledger = Ledger::new(terms);
        synthetic.steps().iter().for_each(|step| ledger.add(step, None));
        self.ledgers.insert(model.unwrap_or("synthetic traffic").to_owned(), ledger);
    }

    pub fn passed(&self) -> Passed {
        self.reader.passed
    }

    fn ledger(&mut self, model: &str) -> Option<&mut Ledger> {
        if !self.ledgers.contains_key(model) {
            if self.ledgers.len() >= MODELS {
                return None;
            }
            self.ledgers.insert(model.to_owned(), Ledger::new(self.terms(model)));
        }
        self.ledgers.get_mut(model)
    }

    fn terms(&self, model: &str) -> Terms {
        let Settings { prices, limits, cached, life, append } = &self.settings;
        let rules = prices.cache(model);
        Terms {
            price: prices.find(model),
            rules: Rules { life: life.unwrap_or(rules.life), ..rules },
            cached: *cached,
            able: Able { append: append(model), dispatch: true },
            limits: *limits,
        }
    }
}
