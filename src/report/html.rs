//! The report as one HTML file: no asset, no script. NOT figures of its own.

use std::fmt::Write;

use super::arms::Arm;
use super::conversations::Comparison;
use super::ranks::DEEPEST;
use super::recall::{Named, Recall, Verdict};
use super::summary::Summary;
use crate::chart::bars::{Bar, Bars, Tone};
use crate::chart::curve::{Axis, Curve, Line, Unit};
use crate::chart::html::{Page, Text, name};
use crate::chart::number::{count, percent, short, usd};

/// Rows of a table that a person reads; `--json` has all.
const ROWS: usize = 20;
/// Lines that can be told apart.
const LINES: usize = 5;

impl Summary {
    /// One self-contained page.
    pub fn html(&self) -> String {
        let mut body = String::from("<main>\n<header><h1>Packlight report</h1>");
        let _ = writeln!(
            body,
            "<p class=\"soft\">{} records of {} conversations, {} to {} UTC{}</p></header>",
            count(self.records as i64),
            count(self.conversations as i64),
            Text(if self.from.is_empty() { "–" } else { &self.from }),
            Text(if self.to.is_empty() { "–" } else { &self.to }),
            match &self.first_unreadable {
                Some(place) => format!("; {} lines are no record, the first is {}", self.unreadable, Text(place)),
                None => String::new(),
            }
        );
        self.tiles(&mut body);
        if let Some(recall) = &self.recall {
            recall_html(&mut body, recall);
        }
        self.savings_html(&mut body);
        self.counts(&mut body);
        self.changes(&mut body);
        body.push_str("</main>");
        Page { title: "Packlight report", body: &body, style: "", script: "" }.html()
    }

    fn tiles(&self, out: &mut String) {
        out.push_str("<div class=\"tiles\">");
        if let Some(recall) = &self.recall {
            let (bound, calls) = (count(recall.bound as i64), count(recall.calls as i64));
            let more = format!("{bound} of {calls} calls {}", recall.width());
            tile(out, "Recall in shadow", &percent(recall.recall), &more, "");
        }
        if let Some(comparison) = self.comparisons.first()
            && let Some(change) = comparison.usd_per_conversation
        {
            let tone = if change.share > 0.0 { "bad" } else { "good" };
            let word = if change.share > 0.0 { "more" } else { "less" };
            let value = format!("{} {word}", percent(change.share.abs()));
            tile(out, "Cost of a conversation, narrowed against held out", &value, &change.said(), tone);
        }
        for arm in self.arms.iter().filter(|arm| arm.valued > 0) {
            let label = if arm.arm == "shadow" { "Would have saved, net of cache" } else { "Saved, net of cache" };
            let more =
                format!("estimate, {} requests, {} tool tokens", count(arm.valued as i64), short(arm.saved_tokens));
            let tone = if arm.saved_usd < 0.0 { "bad" } else { "good" };
            tile(out, &format!("{label} ({})", arm.arm), &usd(arm.saved_usd), &more, tone);
        }
        let full: u64 = self.reasons.iter().map(|(_, count)| count).sum();
        let more = self.reasons.first().map_or_else(String::new, |(reason, _)| format!("most often: {reason}"));
        tile(out, "Sent in full", &percent(full as f64 / self.records as f64), &more, "");
        out.push_str("</div>\n");
    }

    fn savings_html(&self, out: &mut String) {
        if self.arms.is_empty() {
            return;
        }
        out.push_str("<h2>Savings</h2>\n<div class=\"card scroll\">");
        arms_html(out, &self.arms);
        out.push_str(
            "<p class=\"hint\">Usage as providers report it. Arms may carry different work: what may be compared stands \
             below.</p></div>\n",
        );
        if !self.token_factors.is_empty() {
            out.push_str("<p class=\"soft\">Tokens reported for each that is estimated:");
            for (model, correction) in self.token_factors.iter().take(ROWS) {
                let _ = write!(out, " <span class=\"tag\">{} {}</span>", name(model), Text(&correction.said()));
            }
            out.push_str("</p>\n");
        }
        for comparison in &self.comparisons {
            comparison_html(out, comparison);
        }
        let days = |value: fn(&super::arms::Day) -> f64, title: &str| Bars {
            title: title.to_owned(),
            rows: self
                .days
                .iter()
                .filter(|day| value(day) != 0.0)
                .map(|day| Bar {
                    name: day.date.clone(),
                    value: value(day),
                    shown: usd(value(day)),
                    interval: None,
                    tone: if value(day) < 0.0 { Tone::Bad } else { Tone::Good },
                })
                .collect(),
            most: None,
        };
        let charts = [
            days(|day| day.saved_usd, "Saved by day, net of cache (estimate)").html(),
            days(|day| day.shadow_usd, "What shadow would have saved, by day").html(),
        ];
        grid(out, &charts);
    }

    fn counts(&self, out: &mut String) {
        let bars = |title: &str, counts: &[(String, u64)]| {
            let row = |(name, total): &(String, u64)| Bar {
                name: name.clone(),
                value: *total as f64,
                shown: count(*total as i64),
                interval: None,
                tone: Tone::Plain,
            };
            Bars { title: title.to_owned(), rows: counts.iter().take(ROWS).map(row).collect(), most: None }.html()
        };
        let charts = [
            bars("Sent in full, by reason", &self.reasons),
            bars("Block changes, by cause", &self.causes),
            bars("Searches, by what they came to", &self.searches),
        ];
        if charts.iter().any(|chart| !chart.is_empty()) {
            out.push_str("<h2>What happened</h2>\n");
            grid(out, &charts);
        }
    }

    fn changes(&self, out: &mut String) {
        if !self.advice.is_empty() {
            out.push_str("<h2>What to change</h2>\n<div class=\"grid-2\">");
            for advice in &self.advice {
                let _ = write!(out, "<div class=\"card\"><h3>{}</h3><p>", name(&advice.about));
                let _ = writeln!(out, "{}</p><pre><code>{}</code></pre></div>", name(&advice.why), Text(&advice.toml));
            }
            out.push_str("</div>\n");
        }
        if !self.notes.is_empty() {
            out.push_str("<h2>What these figures do not say</h2>\n<ul class=\"soft\">");
            self.notes.iter().for_each(|note| {
                let _ = write!(out, "<li>{}</li>", Text(note));
            });
            out.push_str("</ul>\n");
        }
    }
}

fn recall_html(out: &mut String, recall: &Recall) {
    let tone = match recall.verdict {
        Verdict::Promote => "good",
        Verdict::ImproveCatalog => "bad",
        Verdict::RaiseK | Verdict::SetK | Verdict::KeptOut | Verdict::TooFewCalls => "warn",
    };
    let (low, high) = recall.interval;
    let _ = writeln!(
        out,
        "<h2>Recall in shadow</h2>\n<p class=\"verdict {tone}\"><strong>{}</strong> – {}.<br><span class=\"soft\">{} of \
         calls, 95 % interval {} to {}. {} calls of tools that are never withheld are not counted. A miss is no failure: \
         the model asks find_tools for the tool, at the price of one more call.</span></p>",
        Text(recall.verdict.label()),
        name(&recall.words),
        percent(recall.recall),
        percent(low),
        percent(high),
        count(recall.core_calls as i64)
    );
    let points = |curve: &[super::ranks::Point], depth: usize| {
        curve.iter().take(depth).map(|point| (point.k as f64, point.recall)).collect()
    };
    // As far as it rises.
    let most = recall.curve.last().map_or(0, |point| point.bound);
    let depth = recall.curve.iter().position(|point| 500 * point.bound >= 499 * most).unwrap_or(DEEPEST);
    let depth = (depth + 4).clamp(24, DEEPEST).max(recall.k.unwrap_or_default());
    let mut lines = vec![Line { name: "all".into(), points: points(&recall.curve, depth) }];
    if recall.languages.len() > 1 {
        let one = |named: &Named| Line { name: named.name.clone(), points: points(&named.curve, depth) };
        lines.extend(recall.languages.iter().take(LINES).map(one));
    }
    let lowest = lines.iter().flat_map(|line| &line.points).map(|(_, share)| *share).fold(1.0, f64::min);
    let mut marks = vec![match recall.k {
        Some(k) => (k as f64, format!("k = {k}")),
        None => (recall.selected.min(depth as f64), format!("{:.1} on average", recall.selected)),
    }];
    if let Some(k) = recall.recommended_k.filter(|k| Some(*k) != recall.k) {
        marks.push((k as f64, format!("recommended {k}")));
    }
    let curve = Curve {
        title: "Calls that a selection of k would have held".into(),
        x: Axis { title: "k: tools chosen for a message".into(), range: Some((1.0, depth as f64)), unit: Unit::Number },
        y: Axis { title: String::new(), range: Some(((lowest * 10.0).floor() / 10.0, 1.0)), unit: Unit::Percent },
        lines,
        marks,
    };
    let worst: Vec<Named> = recall.tools.iter().take(ROWS).cloned().collect();
    let _ = writeln!(
        out,
        "<div class=\"grid-2\"><div class=\"stack\"><div class=\"card\">{}</div><div class=\"card\">{}</div></div><div \
         class=\"card\">{}</div></div>",
        curve.html(),
        shares("By language", &recall.languages),
        shares("By tool, worst first", &worst)
    );
    missed_html(out, recall);
}

fn missed_html(out: &mut String, recall: &Recall) {
    if recall.missed.is_empty() {
        return;
    }
    out.push_str(
        "<h2>What was missed</h2>\n<div class=\"card scroll\"><table><thead><tr><th>tool</th><th \
         class=\"number\">misses</th><th class=\"number\">rank</th><th>messages</th></tr></thead><tbody>",
    );
    for missed in recall.missed.iter().take(ROWS) {
        let rank = missed.median_rank.map_or_else(|| "&gt; 64".to_owned(), |rank| rank.to_string());
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{} of {}</td><td class=\"number\">{rank}</td><td class=\"said\">",
            name(&missed.tool),
            count(missed.misses as i64),
            count(missed.calls as i64)
        );
        let mut said: Vec<String> = Vec::new();
        for example in &missed.examples {
            if said.contains(&example.shown()) {
                continue;
            }
            said.push(example.shown());
            match &example.text {
                Some(text) => {
                    let _ = write!(out, "<p dir=\"auto\">{}</p>", Text(text));
                }
                None => {
                    let _ = write!(out, "<code>{}</code> ", Text(&example.query));
                }
            }
        }
        out.push_str("</td></tr>");
    }
    out.push_str("</tbody></table></div>\n");
}

fn shares(title: &str, named: &[Named]) -> String {
    let row = |named: &Named| Bar {
        name: named.name.clone(),
        value: named.recall,
        shown: format!("{} / {}", count(named.bound as i64), count(named.calls as i64)),
        interval: Some(named.interval),
        tone: if named.recall >= super::recall::TARGET { Tone::Good } else { Tone::Plain },
    };
    Bars { title: title.to_owned(), rows: named.iter().take(ROWS).map(row).collect(), most: Some(1.0) }.html()
}

fn arms_html(out: &mut String, arms: &[Arm]) {
    out.push_str("<table><thead><tr><th>arm</th>");
    for head in ["requests", "prompt tokens", "cached", "completion", "cost", "saved tokens", "saved, net"] {
        let _ = write!(out, "<th class=\"number\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for arm in arms {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", Text(arm.arm));
        let saved = if arm.valued > 0 { usd(arm.saved_usd) } else { "–".to_owned() };
        let tokens = if arm.saved_tokens == 0 { "–".to_owned() } else { short(arm.saved_tokens) };
        let cells = [
            count(arm.requests as i64),
            short(arm.prompt as i64),
            percent(arm.cached_share()),
            short(arm.completion as i64),
            usd(arm.cost_usd),
            tokens,
        ];
        for cell in cells {
            let _ = write!(out, "<td class=\"number\">{cell}</td>");
        }
        let tone = if arm.saved_usd < 0.0 { " bad" } else { "" };
        let _ = writeln!(out, "<td class=\"number{tone}\">{saved}</td></tr>");
    }
    out.push_str("</tbody></table>");
}

fn comparison_html(out: &mut String, comparison: &Comparison) {
    let _ = write!(
        out,
        "<h3>{} {}: {} narrowed conversations against {} held out</h3><div class=\"grid-2\">",
        name(&comparison.upstream),
        name(&comparison.model),
        count(comparison.narrow as i64),
        count(comparison.holdout as i64)
    );
    for (what, change) in comparison.rows() {
        let shown = |value: f64| if what.starts_with("cost") { usd(value) } else { count(value.round() as i64) };
        let row = |name: &str, mean: super::compare::Mean, tone| Bar {
            name: name.into(),
            value: mean.mean,
            shown: shown(mean.mean),
            interval: mean.interval,
            tone,
        };
        let tone = if change.share > 0.0 { Tone::Bad } else { Tone::Good };
        let rows = vec![row("narrow", change.narrow, tone), row("holdout", change.holdout, Tone::Muted)];
        let bars = Bars { title: what.to_owned(), rows, most: None }.html();
        let _ = write!(out, "<div class=\"card\">{bars}<p class=\"hint\">{}</p></div>", Text(&change.said()));
    }
    out.push_str("</div>\n");
}

fn tile(out: &mut String, label: &str, value: &str, more: &str, tone: &str) {
    let _ = write!(
        out,
        "<div class=\"tile\"><div class=\"label\">{}</div><div class=\"value {tone}\">{}</div><div \
         class=\"more\">{}</div></div>",
        Text(label),
        Text(value),
        name(more)
    );
}

fn grid(out: &mut String, charts: &[String]) {
    out.push_str("<div class=\"grid-2\">");
    for chart in charts.iter().filter(|chart| !chart.is_empty()) {
        let _ = write!(out, "<div class=\"card\">{chart}</div>");
    }
    out.push_str("</div>\n");
}
