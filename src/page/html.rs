//! The page around the decisions: mode of each upstream, and what today came to. NOT the sums.

use std::fmt::Write;

use super::decisions;
use super::today::Day;
use crate::chart::clock;
use crate::chart::html::{Page, Text, cut, name};
use crate::chart::number::{count, percent, short, usd};
use crate::cost::correction::Correction;
use crate::decision::Decision;
use crate::report::arms::Arm;

/// What a sidecar shows of itself.
#[derive(Debug)]
pub struct View<'a> {
    /// Seconds since the epoch.
    pub now: f64,
    pub embedder: Embedder,
    pub upstreams: Vec<Upstream>,
    /// What providers report for estimated tokens, by model.
    pub corrections: Vec<(String, Correction)>,
    /// Newest first.
    pub decisions: &'a [Decision],
}

/// Can messages be embedded?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Embedder {
    Ready,
    Loading,
    Absent,
}

/// An upstream, how it is served, and its day.
#[derive(Debug, Default)]
pub struct Upstream {
    pub name: String,
    pub prefix: String,
    pub url: String,
    /// `off`, `shadow` or `narrow`.
    pub mode: &'static str,
    pub percent: u8,
    pub today: Day,
}

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document and its Content-Security-Policy.
pub fn page(view: &View<'_>) -> (String, String) {
    let mut body = String::from("<main>\n");
    head(&mut body, view);
    body.push_str("<section id=\"today\" data-live>");
    tiles(&mut body, view);
    upstreams(&mut body, view);
    arms(&mut body, view);
    corrections(&mut body, view);
    body.push_str("</section>\n<div class=\"bar-head\"><h2>Last decisions</h2>");
    body.push_str("<label class=\"soft\"><input type=\"checkbox\" id=\"only-missed\"> only misses</label></div>\n");
    body.push_str("<section id=\"decisions\" data-live>");
    decisions::list(&mut body, view.decisions);
    body.push_str("</section>\n</main>");
    let page = Page { title: "Packlight", body: &body, style: STYLE, script: SCRIPT };
    (page.html(), format!("{}; frame-ancestors 'none'", page.policy()))
}

fn head(out: &mut String, view: &View<'_>) {
    let (tone, embedder) = match view.embedder {
        Embedder::Ready => ("good", "embedder ready"),
        Embedder::Loading => ("warn", "embedder loading: requests go in full"),
        Embedder::Absent => ("bad", "no embedding model: requests go in full, run make model"),
    };
    let now = clock::utc(view.now);
    let _ = writeln!(
        out,
        "<header class=\"top\"><svg class=\"mark\" viewBox=\"0 0 32 32\" aria-hidden=\"true\"><rect class=\"pack\" x=\"3\" \
         y=\"9\" width=\"26\" height=\"19\" rx=\"5\"/><path class=\"strap\" d=\"M11 9V7a5 5 0 0 1 10 0v2M3 17h26M16 \
         17v4\"/></svg><div><h1>Packlight <span class=\"soft\">{}</span></h1><p class=\"soft\"><span id=\"now\" \
         data-live>{now} UTC</span><span id=\"stale\" class=\"bad\" hidden> · not answering</span></p></div><span \
         class=\"tag {tone}\" id=\"embedder\" data-live>{embedder}</span><nav class=\"soft\"><a href=\"metrics\">metrics</a> \
         <a href=\"decisions\">decisions</a> <a href=\"readyz\">readiness</a></nav></header>",
        Text(env!("CARGO_PKG_VERSION"))
    );
}

fn tiles(out: &mut String, view: &View<'_>) {
    let arms = || view.upstreams.iter().flat_map(|upstream| &upstream.today.arms);
    let sum = |arm: &str| {
        arms().filter(|one| one.arm == arm).fold(Arm::default(), |mut sum, one| {
            sum.requests += one.requests;
            sum.saved_tokens = sum.saved_tokens.saturating_add(one.saved_tokens);
            sum.saved_usd += one.saved_usd;
            sum.valued += one.valued;
            sum
        })
    };
    let (narrow, shadow) = (sum("narrow"), sum("shadow"));
    let requests: u64 = arms().map(|arm| arm.requests).sum();
    out.push_str("<div class=\"tiles\">");
    let sign = |value: f64| if value < 0.0 { "bad" } else { "" };
    if narrow.valued > 0 {
        let more = format!("estimate, net of the prompt cache, {} requests", count(narrow.valued as i64));
        tile(
            out,
            "Saved today",
            &usd(narrow.saved_usd),
            &more,
            if narrow.saved_usd > 0.0 { "good" } else { sign(narrow.saved_usd) },
        );
    } else if shadow.valued > 0 {
        let more = format!("estimate, net of the prompt cache, {} requests", count(shadow.valued as i64));
        tile(out, "Would have saved today", &usd(shadow.saved_usd), &more, sign(shadow.saved_usd));
    } else {
        let more = if narrow.requests > 0 { "these models have no price" } else { "no narrowed request yet" };
        tile(out, "Saved today", "–", more, "");
    }
    let (tokens, what) = if narrow.requests > 0 || shadow.requests == 0 {
        (narrow.saved_tokens, "Tool tokens not sent")
    } else {
        (shadow.saved_tokens, "Tool tokens that would not be sent")
    };
    tile(out, what, &short(tokens), "estimate, first legs", sign(tokens as f64));
    let (calls, bound) = view
        .upstreams
        .iter()
        .filter_map(|upstream| upstream.today.recall.as_ref())
        .fold((0, 0), |(calls, bound), recall| (calls + recall.calls, bound + recall.bound));
    if calls > 0 {
        let more = format!("{} of {} calls would have been bound", count(bound as i64), count(calls as i64));
        tile(out, "Recall in shadow", &percent(bound as f64 / calls as f64), &more, "");
    } else {
        tile(out, "Recall in shadow", "–", "no call in shadow yet", "");
    }
    let failed: u64 = view.upstreams.iter().map(|upstream| upstream.today.failed_open).sum();
    if requests > 0 {
        let more = format!("{} of {} requests", count(failed as i64), count(requests as i64));
        let tone = if failed * 20 > requests { "bad" } else { "" };
        tile(out, "Failed open", &percent(failed as f64 / requests as f64), &more, tone);
    } else {
        tile(out, "Requests today", "0", "since midnight UTC", "");
    }
    out.push_str("</div>\n");
}

fn tile(out: &mut String, label: &str, value: &str, more: &str, tone: &str) {
    let _ = write!(
        out,
        "<div class=\"tile\"><div class=\"label\">{label}</div><div class=\"value {tone}\">{value}</div><div \
         class=\"more\">{more}</div></div>"
    );
}

fn upstreams(out: &mut String, view: &View<'_>) {
    out.push_str("<h2>Upstreams</h2><div class=\"upstreams\">");
    for upstream in &view.upstreams {
        let (tone, mode) = match upstream.mode {
            "narrow" if upstream.percent < 100 => ("good", format!("narrow {} %", upstream.percent)),
            "narrow" => ("good", "narrow".to_owned()),
            "shadow" => ("plain", "shadow".to_owned()),
            _ => ("", "off".to_owned()),
        };
        let requests: u64 = upstream.today.arms.iter().map(|arm| arm.requests).sum();
        let _ = write!(
            out,
            "<div class=\"card\"><div class=\"line\"><strong>{}</strong><span class=\"tag {tone}\">{mode}</span></div><p \
             class=\"soft mono\">{} → {}</p><p>{} requests today",
            name(&upstream.name),
            Text(&upstream.prefix),
            Text(&cut(&upstream.url, 120)),
            count(requests as i64)
        );
        if let Some(recall) = &upstream.today.recall {
            let _ = write!(out, ", recall in shadow {}", percent(recall.recall));
        }
        for arm in upstream.today.arms.iter().filter(|arm| arm.valued > 0) {
            let would = if arm.arm == "shadow" { "would have saved" } else { "saved" };
            let tone = if arm.saved_usd < 0.0 { "bad" } else { "" };
            let _ = write!(out, ", {would} <span class=\"{tone}\">{}</span>", usd(arm.saved_usd));
        }
        out.push_str("</p></div>");
    }
    out.push_str("</div>\n");
}

fn arms(out: &mut String, view: &View<'_>) {
    if view.upstreams.iter().all(|upstream| upstream.today.arms.is_empty()) {
        return;
    }
    out.push_str(
        "<h2>Today by arm</h2><div class=\"card scroll\"><table class=\"arms\"><thead><tr><th>upstream</th><th>arm</th>",
    );
    for head in ["requests", "saved (est.)", "cost", "per request", "cached", "prompt tokens", "completion"] {
        let _ = write!(out, "<th class=\"number\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for upstream in &view.upstreams {
        for arm in &upstream.today.arms {
            let priced = arm.reported.saturating_sub(arm.unpriced);
            let cost = |value: f64| if priced > 0 { usd(value) } else { "–".to_owned() };
            let saved = if arm.valued > 0 { usd(arm.saved_usd) } else { "–".to_owned() };
            let _ = write!(out, "<tr><th scope=\"row\">{}</th><td>{}</td>", name(&upstream.name), Text(arm.arm));
            let tone = if arm.saved_usd < 0.0 { "bad" } else { "" };
            let cells = [
                (count(arm.requests as i64), ""),
                (saved, tone),
                (cost(arm.cost_usd), ""),
                (cost(arm.cost_usd / priced.max(1) as f64), ""),
                (percent(arm.cached_share()), ""),
                (short(arm.prompt as i64), ""),
                (short(arm.completion as i64), ""),
            ];
            for (cell, tone) in cells {
                let _ = write!(out, "<td class=\"number {tone}\">{cell}</td>");
            }
            out.push_str("</tr>");
        }
    }
    out.push_str(
        "</tbody></table><p class=\"hint\">Tokens and costs as providers report them; what is saved is an estimate, net of \
         the prompt cache. Compare narrow with holdout only. <code>packlight report</code> does it with \
         intervals.</p></div>\n",
    );
}

/// Estimates beside what was reported for them.
fn corrections(out: &mut String, view: &View<'_>) {
    if view.corrections.is_empty() {
        return;
    }
    out.push_str("<h2>Estimated tokens</h2><div class=\"card\"><p>Reported for each that is estimated:");
    for (model, correction) in view.corrections.iter().take(MODELS) {
        let _ = write!(out, "<br>{} {}", name(model), Text(&correction.said()));
    }
    out.push_str(
        "</p><p class=\"hint\">Estimates are o200k's; a model counts otherwise. Learnt from requests sent in full, with the \
         error that remains.</p></div>\n",
    );
}

/// Models whose tokens are shown: `/metrics` has all.
const MODELS: usize = 8;
