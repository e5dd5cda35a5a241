//! The last decisions as a list that opens: what was bound, withheld, called and missed, and behind it the scores, the
//! message where the log may have it, and the numbers. NOT which decisions.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use crate::chart::clock;
use crate::chart::html::{Text, cut, name};
use crate::chart::number::{count, percent, seconds, short, usd};
use crate::decision::{Called, Decision};

/// Names in a list; a roster may have hundreds.
const NAMES: usize = 80;
/// Characters of a name, and of a message.
const NAME: usize = 80;
const MESSAGE: usize = 2_000;

/// `decisions`: newest first.
pub fn list(out: &mut String, decisions: &[Decision]) {
    if decisions.is_empty() {
        out.push_str(
            "<div class=\"card empty\"><p><strong>No request yet.</strong></p><p class=\"soft\">Point an agent's base URL \
             at a prefix above: every chat request appears here, with what the model was sent and what it called.</p></div>",
        );
        return;
    }
    let rosters = rosters(decisions);
    out.push_str("<div class=\"card list\">");
    for decision in decisions {
        one(out, decision, rosters.get(decision.roster.hash.as_str()));
    }
    out.push_str("</div>");
}

/// Names of the tools behind a roster's digest, where one of these records has them.
fn rosters(decisions: &[Decision]) -> HashMap<&str, Vec<&str>> {
    let known = decisions.iter().filter(|decision| !decision.roster.tool_tokens.is_empty());
    known
        .map(|decision| {
            let names = decision.roster.tool_tokens.iter().map(|tool| tool.name.as_str()).collect();
            (decision.roster.hash.as_str(), names)
        })
        .collect()
}

fn one(out: &mut String, decision: &Decision, roster: Option<&Vec<&str>>) {
    let missed = decision.called.iter().any(Called::is_missed);
    let class = if missed { " missed" } else { "" };
    let id = Text(&decision.request);
    let _ = write!(out, "<details class=\"decision{class}\" id=\"r-{id}\"><summary>");
    let time = clock::utc(decision.ts);
    let time = time.split(' ').nth(1).unwrap_or_default();
    let _ = write!(out, "<span class=\"time\">{time}</span>{}", action(decision));
    let _ = write!(
        out,
        "<span class=\"what\">{} <span class=\"soft\">{}</span></span>",
        name(&cut(&decision.upstream, NAME)),
        name(&cut(&decision.model, NAME))
    );
    let _ = write!(out, "<span class=\"tools\">{}</span><span class=\"calls\">", tools(decision));
    for call in decision.called.iter().take(6) {
        let _ = write!(out, "<span class=\"tag {}\">{}</span> ", tone(call), name(&cut(&call.name, NAME)));
    }
    if decision.called.len() > 6 {
        let _ = write!(out, "<span class=\"soft\">+{}</span>", decision.called.len() - 6);
    }
    if decision.called.is_empty() {
        out.push_str("<span class=\"soft\">no call</span>");
    }
    out.push_str("</span></summary><div class=\"inside\">");
    message(out, decision);
    out.push_str("<div class=\"grid-2\"><div>");
    names(out, decision, roster);
    out.push_str("</div><div>");
    scores(out, decision);
    numbers(out, decision);
    out.push_str("</div></div></div></details>");
}

fn action(decision: &Decision) -> String {
    let tone = match decision.action.as_str() {
        "narrowed" => "good",
        "shadow" => "plain",
        "full" if super::today::FAILURES.contains(&decision.reason.as_str()) => "bad",
        _ => "",
    };
    let reason = if decision.reason.is_empty() { String::new() } else { format!(" · {}", decision.reason) };
    format!(
        "<span class=\"state\"><span class=\"tag {tone}\">{}{}</span></span>",
        Text(&decision.action),
        Text(&reason)
    )
}

/// `44 → 18 tools`; in shadow `44 (18)`.
fn tools(decision: &Decision) -> String {
    let (roster, bound) = (decision.roster.count, decision.bound.len());
    match decision.action.as_str() {
        "narrowed" => format!("{roster} → {bound} tools"),
        "shadow" if bound > 0 => format!("{roster} tools, would be {bound}"),
        _ => format!("{roster} tools"),
    }
}

fn tone(call: &Called) -> &'static str {
    match call.verdict.as_str() {
        "withheld" => "bad",
        "discovered" => "warn",
        _ => "good",
    }
}

fn message(out: &mut String, decision: &Decision) {
    let Some(query) = &decision.query else { return };
    match &query.text {
        Some(text) => {
            let _ = write!(out, "<blockquote dir=\"auto\">{}</blockquote>", Text(&cut(text, MESSAGE)));
        }
        None => {
            let _ = write!(
                out,
                "<p class=\"soft\">message <code>{}</code>: its text is kept only with <code>log.text = true</code></p>",
                Text(&query.hash)
            );
        }
    }
}

fn names(out: &mut String, decision: &Decision, roster: Option<&Vec<&str>>) {
    let called: HashMap<&str, &Called> = decision.called.iter().map(|call| (call.name.as_str(), call)).collect();
    let bound: HashSet<&str> = decision.bound.iter().map(String::as_str).collect();
    if !decision.called.is_empty() {
        out.push_str("<h3>Called</h3><ul class=\"names\">");
        for call in decision.called.iter().take(NAMES) {
            let rank = call.rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
            let verdict = match call.verdict.as_str() {
                "withheld" => "missed",
                verdict => verdict,
            };
            let name = name(&cut(&call.name, NAME));
            let _ = write!(out, "<li><span class=\"tag {}\">{name}: {}{rank}</span></li>", tone(call), Text(verdict));
        }
        out.push_str("</ul>");
    }
    let mark = |name: &str| called.get(name).map_or("", |call| tone(call));
    if !decision.bound.is_empty() {
        let title = if decision.action == "shadow" { "Would be bound" } else { "Bound" };
        let all: Vec<&str> = decision.bound.iter().map(String::as_str).collect();
        named(out, title, &all, decision.bound.len(), mark);
    }
    let withheld = decision.roster.count.saturating_sub(decision.bound.len());
    if !decision.bound.is_empty() && withheld > 0 {
        let known: Vec<&str> = match roster {
            Some(roster) => roster.iter().copied().filter(|name| !bound.contains(name)).collect(),
            None => decision.selection.iter().map(|tool| tool.name.as_str()).filter(|n| !bound.contains(n)).collect(),
        };
        named(out, "Withheld", &known, withheld, mark);
    }
    if !decision.discovered.is_empty() {
        let all: Vec<&str> = decision.discovered.iter().map(String::as_str).collect();
        named(out, "Found by a search", &all, all.len(), mark);
    }
}

fn named(out: &mut String, title: &str, names: &[&str], all: usize, mark: impl Fn(&str) -> &'static str) {
    let _ = write!(out, "<h3>{title} <span class=\"soft\">{all}</span></h3><ul class=\"names\">");
    for tool in names.iter().take(NAMES) {
        let _ = write!(out, "<li><span class=\"tag {}\">{}</span></li>", mark(tool), name(&cut(tool, NAME)));
    }
    let rest = all.saturating_sub(names.len().min(NAMES));
    if rest > 0 {
        let _ = write!(out, "<li class=\"soft\">and {rest} more</li>");
    }
    out.push_str("</ul>");
}

fn scores(out: &mut String, decision: &Decision) {
    if decision.selection.is_empty() {
        return;
    }
    let bound: HashSet<&str> = decision.bound.iter().map(String::as_str).collect();
    let scores = || decision.selection.iter().map(|tool| f64::from(tool.score)).filter(|score| score.is_finite());
    // Bars from the weakest shown: scores of a good embedder lie close together.
    let (low, high) = scores().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), score| (l.min(score), h.max(score)));
    let span = if high > low { high - low } else { 1.0 };
    out.push_str(
        "<table class=\"bars scores\"><caption>Scores</caption><thead class=\"hidden\"><tr><th>tool</th><th></th><th \
         class=\"number\">score</th></tr></thead><tbody>",
    );
    for (place, tool) in decision.selection.iter().enumerate() {
        let score = f64::from(tool.score);
        let width = if score.is_finite() { 60.0 + (score - low) / span * 940.0 } else { 0.0 };
        let tone = if bound.contains(tool.name.as_str()) { "plain" } else { "muted" };
        let _ = write!(
            out,
            "<tr><th scope=\"row\"><span class=\"soft\">{}</span> {}</th><td class=\"bar\"><svg viewBox=\"0 0 1000 16\" \
             preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"{tone}\" y=\"3\" width=\"{width:.0}\" \
             height=\"10\"/></svg></td><td class=\"number\">{score:.3}</td></tr>",
            place + 1,
            name(&cut(&tool.name, NAME))
        );
    }
    out.push_str("</tbody></table>");
}

fn numbers(out: &mut String, decision: &Decision) {
    out.push_str("<h3>Numbers</h3><dl>");
    let mut row = |what: &str, value: String| {
        let _ = write!(out, "<dt>{what}</dt><dd>{}</dd>", Text(&value));
    };
    if let Some(usage) = decision.usage {
        let cached = percent(usage.cached as f64 / usage.prompt.max(1) as f64);
        let cost = decision.cost_usd.map_or_else(String::new, |cost| format!(", {}", usd(cost)));
        let completion = count(usage.completion as i64);
        row("provider's usage", format!("{} in ({cached} cached), {completion} out{cost}", count(usage.prompt as i64)));
    }
    if decision.saved.tokens != 0 || decision.saved.usd.is_some() {
        let net = decision.saved.usd.map_or_else(String::new, |saved| format!(", {} net of cache", usd(saved)));
        let what = if decision.arm == "shadow" { "would save (estimate)" } else { "saved (estimate)" };
        row(what, format!("{} tool tokens{net}", count(decision.saved.tokens)));
    }
    if let Some(block) = &decision.block {
        let cause = block.cause.as_deref().map_or_else(|| "unchanged".to_owned(), |cause| format!("changed: {cause}"));
        row(
            "block",
            format!("{} of {} tokens, {cause}", short(block.tokens as i64), short(decision.roster.tokens as i64)),
        );
    }
    let micros = |time: u64| seconds(time as f64 / 1e6);
    let timings = decision.timings_us;
    row("time", format!("{} ours, {} upstream", micros(timings.total), micros(timings.upstream)));
    let legs =
        if decision.legs == 1 { "1 upstream call".to_owned() } else { format!("{} upstream calls", decision.legs) };
    let binding = if decision.binding.is_empty() { String::new() } else { format!(", {}", decision.binding) };
    row("sent", format!("{legs}, status {}{binding}", decision.status));
    row("turn", format!("{}, call {}; conversation {}", decision.turn, decision.call, decision.conversation));
    row("request", decision.request.clone());
    out.push_str("</dl>");
}
