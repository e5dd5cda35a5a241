//! The demo as a person reads it, in ten seconds: aligned rows, at most [`WIDTH`] columns. NOT what is true: it shows
//! what it is given.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use super::judge::{Played, Roster};
use super::script::{Act, FIND_TOOLS};

/// Columns.
const WIDTH: usize = 100;
/// Columns of a row's label, with what stands before it.
const LABEL: usize = 13;

/// Does the reader see colours?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Ansi,
}

/// Where the demo is written.
pub struct Page<'a> {
    out: &'a mut dyn Write,
    paint: Paint,
}

/// Of all that was played.
#[derive(Debug, Default, Clone, Copy)]
pub struct Totals {
    /// Prompt tokens, had every request been sent as the agent wrote it.
    pub full: usize,
    /// Prompt tokens the model was sent, every leg counted.
    pub sent: usize,
    pub requests: usize,
    pub legs: usize,
}

impl<'a> Page<'a> {
    pub fn new(out: &'a mut dyn Write, paint: Paint) -> Self {
        Self { out, paint }
    }

    pub fn opening(&mut self, tools: usize) -> io::Result<()> {
        let title = self.bold("packlight demo");
        writeln!(self.out, "{title}: a CRM of {tools} tools, a scripted model; no key, nothing leaves this machine")?;
        write!(self.out, "vectors of the tools (made once, then kept on disk) ... ")?;
        self.out.flush()
    }

    /// `took`: until the vectors were there.
    pub fn warmed(&mut self, took: Duration) -> io::Result<()> {
        writeln!(self.out, "ready in {}", seconds(took))
    }

    /// `ranks`: bound tools, best first, as the sidecar ranked them; empty: not known.
    pub fn scene(&mut self, number: usize, played: &Played, roster: &Roster<'_>, ranks: &[String]) -> io::Result<()> {
        let title = self.bold(&format!("{number}  {}", played.scene.title));
        writeln!(self.out, "\n{title}")?;
        self.row("user", &format!("\"{}\"", played.scene.ask))?;
        let bound = played.bound();
        if let Some((asked, leg)) = played.requests.first().and_then(|asked| Some((asked, asked.legs.first()?))) {
            let (before, after) = (asked.exchange.tokens, leg.tokens);
            let search = if leg.tools.len() > bound.len() { " + find_tools" } else { "" };
            let tools = format!("{} -> {}{search}", roster.tools.len(), bound.len());
            let tokens = format!("{} -> {}", thousands(before), thousands(after));
            let saved = self.good(&change(before, after));
            self.row("tools", &format!("{tools}     prompt tokens {tokens} ({saved})"))?;
        }
        let is_core = |name: &&str| roster.core.contains(*name);
        let core: Vec<&str> = bound.iter().copied().filter(is_core).collect();
        self.list("core", &core)?;
        self.list("selected", &selected(&bound, roster, ranks))?;
        self.calls(played, ranks)?;
        if let Some(took) = before_model(played) {
            self.row("took", &format!("{} from the agent's request to the model's door", milliseconds(took)))?;
        }
        Ok(())
    }

    /// What the model did, leg by leg.
    fn calls(&mut self, played: &Played, ranks: &[String]) -> io::Result<()> {
        let bound = played.bound();
        let mut seen: BTreeSet<&str> = bound.iter().copied().collect();
        let legs: Vec<_> = played.legs().collect();
        for (index, leg) in legs.iter().enumerate() {
            let mut found: Vec<&str> = Vec::new();
            let (what, why) = match &leg.act {
                Act::Say(_) => ("answers", String::new()),
                Act::Call { tool, .. } if tool == FIND_TOOLS => {
                    let next = legs.get(index + 1).map(|next| next.names()).unwrap_or_default();
                    found.extend(next.into_iter().filter(|name| seen.insert(name)));
                    ("find_tools", "answered by Packlight, unseen by the agent".to_owned())
                }
                Act::Call { tool, .. } => (tool.as_str(), self.why(tool, &bound, ranks)),
            };
            let label = if index == 0 { "model" } else { "" };
            let line = format!("{what:<20} {:>2} tools {:>7} tokens   {why}", leg.names().len(), thousands(leg.tokens));
            self.row(label, line.trim_end())?;
            let found: Vec<_> = found.iter().enumerate().map(|(rank, name)| format!("{} {name}", rank + 1)).collect();
            self.list("  found", &found)?;
        }
        let (requests, legs) = (played.requests.len(), legs.len());
        let extra = legs.saturating_sub(requests);
        let extra = if extra == 0 { "no extra leg".to_owned() } else { format!("{extra} extra leg for the search") };
        self.row("legs", &format!("{legs} for {requests} requests of the agent: {extra}"))
    }

    fn why(&self, tool: &str, bound: &[&str], ranks: &[String]) -> String {
        match ranks.iter().position(|name| name == tool) {
            _ if !bound.contains(&tool) => self.good("found by the search"),
            Some(rank) => self.good(&format!("selected, rank {}", rank + 1)),
            None => self.good("selected"),
        }
    }

    pub fn closing(&mut self, totals: Totals, complaints: &[String]) -> io::Result<()> {
        let Totals { full, sent, requests, legs } = totals;
        let saved = self.good(&change(full, sent));
        writeln!(self.out)?;
        self.row(
            "in all",
            &format!(
                "prompt tokens {} -> {} ({saved}), {requests} requests, {legs} legs, \
            estimated with o200k",
                thousands(full),
                thousands(sent)
            ),
        )?;
        if complaints.is_empty() {
            let held = self.good("all went as claimed");
            return self
                .row("verdict", &format!("{held}: needed tools bound or found, find_tools unseen, tools unchanged"));
        }
        for complaint in complaints {
            let failed = self.bad("FAILED");
            self.row("verdict", &format!("{failed} {complaint}"))?;
        }
        Ok(())
    }

    /// `bases`: what an agent is to be given, and what it had.
    pub fn how_to(&mut self, bases: &[(String, String)]) -> io::Result<()> {
        let title = self.bold("Your own agent: run `packlight`, then change its base URL");
        writeln!(self.out, "\n{title}")?;
        for (was, now) in bases {
            writeln!(self.out, "   {was:<58} ->  {now}")?;
        }
        Ok(())
    }

    /// There is no model.
    pub fn no_model(&mut self) -> io::Result<()> {
        let failed = self.bad("no embedding model");
        writeln!(self.out, "not made\n{failed}: the demo ranks tools with the builtin one, and its file is not here")?;
        writeln!(self.out, "   make model                fetches it once (72 MB, pinned by hash) into models/")?;
        writeln!(self.out, "   embeddings.model_path     or names a copy")?;
        writeln!(self.out, "without it Packlight serves, and sends every request as the agent wrote it")
    }

    fn list(&mut self, label: &str, names: &[impl Display]) -> io::Result<()> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let (mut label, mut line) = (label, String::new());
        for (index, name) in names.iter().enumerate() {
            let comma = if index + 1 < names.len() { "," } else { "" };
            if !line.is_empty() && LABEL + line.len() + 1 + name.len() + comma.len() > WIDTH {
                self.row(label, &line)?;
                (label, line) = ("", String::new());
            }
            let space = if line.is_empty() { "" } else { " " };
            line.push_str(&format!("{space}{name}{comma}"));
        }
        if line.is_empty() { Ok(()) } else { self.row(label, &line) }
    }

    fn row(&mut self, label: &str, text: &str) -> io::Result<()> {
        let label = self.dim(&format!("   {label:<width$}", width = LABEL - 3));
        writeln!(self.out, "{label}{text}")
    }

    fn painted(&self, code: &str, text: &str) -> String {
        match self.paint {
            Paint::Plain => text.to_owned(),
            Paint::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }

    fn good(&self, text: &str) -> String {
        self.painted("32", text)
    }

    fn bad(&self, text: &str) -> String {
        self.painted("1;31", text)
    }
}

impl Totals {
    pub fn add(&mut self, played: &Played) {
        self.full += played.requests.iter().map(|asked| asked.exchange.tokens).sum::<usize>();
        self.sent += played.legs().map(|leg| leg.tokens).sum::<usize>();
        self.requests += played.requests.len();
        self.legs += played.legs().count();
    }
}

/// What retrieval chose, best first and with its rank where that is known.
fn selected(bound: &[&str], roster: &Roster<'_>, ranks: &[String]) -> Vec<String> {
    let chosen = bound.iter().filter(|name| !roster.core.contains(**name));
    let rank = |name: &str| ranks.iter().position(|ranked| ranked == name);
    let mut chosen: Vec<_> = chosen.map(|name| (rank(name).unwrap_or(usize::MAX), *name)).collect();
    chosen.sort_by_key(|(rank, _)| *rank);
    let shown = |(rank, name): (usize, &str)| {
        if rank == usize::MAX { name.to_owned() } else { format!("{} {name}", rank + 1) }
    };
    chosen.into_iter().map(shown).collect()
}

/// From the agent's first request to its arrival at the model.
fn before_model(played: &Played) -> Option<Duration> {
    let asked = played.requests.first()?;
    Some(asked.legs.first()?.at.duration_since(asked.exchange.sent_at))
}

fn change(before: usize, after: usize) -> String {
    if before == 0 {
        return "0 %".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "a percentage of token counts, far below 2^52")]
    let percent = (after as f64 / before as f64 - 1.0) * 100.0;
    format!("{percent:+.0} %")
}

fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(change(12_000, 4_800), "-60 %");
        assert_eq!(change(100, 110), "+10 %");
    }

    #[test]
    fn a_long_list_wraps_under_its_first_name() {
        let mut out = Vec::new();
        let names: Vec<_> = (0..20).map(|number| format!("tool_number_{number}")).collect();
        Page::new(&mut out, Paint::Plain).list("core", &names).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() > 2);
        assert!(
            text.lines().all(|line| line.len() <= WIDTH && line.get(LABEL..).is_some_and(|l| l.starts_with("tool")))
        );
    }

    #[test]
    fn plain_is_plain() {
        let mut out = Vec::new();
        Page::new(&mut out, Paint::Plain).no_model().unwrap();
        assert!(!out.contains(&0x1b));
    }
}
