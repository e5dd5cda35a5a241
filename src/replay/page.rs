//! The findings as one HTML file: no asset, no script, light and dark. NOT figures of its own.

use std::fmt::Write;

use super::findings::{Findings, Model};
use crate::chart::bars::{Bar, Bars, Tone};
use crate::chart::curve::{Axis, Curve, Line, Unit};
use crate::chart::html::{Page, Text, name};
use crate::chart::number::{count, percent, usd};

/// Lines of the chart; the rest are in the table.
const LINES: [&str; 6] = ["full", "every-turn", "sticky", "growing", "append", "dispatch"];

impl Findings {
    /// One self-contained page.
    pub fn html(&self) -> String {
        let mut body = String::from(
            "<main>\n<header><h1>Packlight replay</h1><p class=\"soft\">What each policy would have cost on this traffic, \
             the provider's prompt cache simulated.</p></header>\n",
        );
        for model in &self.models {
            model.html(&mut body);
        }
        let _ = writeln!(
            body,
            "<p class=\"soft\">Not played: {} without tools or unread, {} of an unknown roster, {} failed, {} of further \
             models, {} lines that are no record.</p></main>",
            self.passed.untouched, self.passed.roster_unknown, self.passed.failed, self.passed.models, self.unreadable
        );
        Page { title: "Packlight replay", body: &body, style: "", script: "" }.html()
    }
}

impl Model {
    fn html(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<p>{} requests, {} conversations; a cached token costs {:.3} of a fresh one. Use \
             <strong>{}</strong>: <code>{}</code></p>",
            name(&self.model),
            count(self.requests as i64),
            count(self.conversations as i64),
            self.ratio,
            self.cheapest,
            Text(&self.advice)
        );
        let bar = |row: &super::findings::Row| Bar {
            name: row.policy.to_owned(),
            value: row.change,
            shown: percent(row.change),
            interval: None,
            tone: match row.change {
                _ if row.policy == self.cheapest => Tone::Good,
                change if change > 0.0 => Tone::Bad,
                _ => Tone::Plain,
            },
        };
        let rows = self.policies.iter().filter(|row| row.policy != "full").map(bar).collect();
        let bars = Bars { title: "Input cost against the full roster".to_owned(), rows, most: Some(1.0) };
        let _ = writeln!(out, "<div class=\"card\">{}</div>", bars.html());
        let lines = LINES.iter().filter_map(|line| self.policies.iter().find(|row| row.policy == *line));
        let lines = lines.map(|row| Line { name: row.policy.to_owned(), points: row.curve.clone() }).collect();
        let unit = if self.input_price.is_some() { Unit::Usd } else { Unit::Number };
        let curve = Curve {
            title: "Input cost as requests came".to_owned(),
            x: Axis { title: "requests".to_owned(), ..Axis::default() },
            y: Axis { title: if self.input_price.is_some() { "USD" } else { "tokens" }.to_owned(), unit, range: None },
            lines,
            ..Curve::default()
        };
        let _ = writeln!(out, "<div class=\"card\">{}</div>", curve.html());
        out.push_str(
            "<div class=\"card scroll\"><table><thead><tr><th>policy</th><th class=\"number\">prompt tokens</th>\
             <th class=\"number\">cached</th><th class=\"number\">at full price</th><th class=\"number\">extra legs</th>\
             <th class=\"number\">cost</th></tr></thead><tbody>\n",
        );
        for row in &self.policies {
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td>\
                 <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
                row.policy,
                count(row.prompt_tokens as i64),
                percent(row.cached_tokens as f64 / row.prompt_tokens.max(1) as f64),
                count(row.weighed_tokens.round() as i64),
                count(row.extra_legs as i64),
                row.usd.map_or_else(|| "–".to_owned(), usd)
            );
        }
        out.push_str("</tbody></table></div>\n");
    }
}
