//! A measurement as one HTML page: figures, curves, what is missing, what makes it worthless. NOT the figures, NOT how
//! a page is made.

use std::fmt::Write;

use super::compare::Compared;
use super::figures::Interval;
use super::gate::Passage;
use super::report::{Missing, Report, SetReport, percent, shown};
use super::sweep::Sweep;
use crate::chart::curve::{Axis, Curve, Line, Unit};
use crate::chart::html::{Page, Text, name};
use crate::retrieval::width::Width;

/// Cases that miss a tool, listed for each set.
const LISTED: usize = 200;

/// The page.
pub fn page(report: &Report, sweeps: &[Sweep], passages: &[Passage]) -> String {
    let mut body = format!(
        "<h1>Does the selection hold what requests need?</h1>\n<p class=\"soft\">{} tools selected; {}</p>\n",
        report.k,
        Text(&report.model)
    );
    for passage in passages {
        let tone = if passage.passed { "good" } else { "bad" };
        let _ = writeln!(body, "<p class=\"verdict {tone}\">{}</p>", Text(&passage.line));
    }
    figures(report, &mut body);
    body.push_str("<h2>How many tools to select</h2>\n<div class=\"grid-2\">\n");
    for set in &report.sets {
        let _ = writeln!(body, "<div class=\"card\">{}</div>", curve(set, report.k, sweeps).html());
    }
    body.push_str("</div>\n");
    for set in &report.sets {
        gaps(set, report.k, &mut body);
    }
    Page { title: "packlight eval", body: &body, style: "", script: "" }.html()
}

/// Two ways of choosing side by side.
pub fn comparison(compared: &[Compared], names: (&str, &str)) -> String {
    let mut body = format!("<h1>Two ways of choosing</h1>\n<p>A: {}<br>B: {}</p>\n", name(names.0), name(names.1));
    let head = ["set", "language", "cases", "A", "B", "B − A [95 %]", "gained", "lost", "p"];
    let rows = compared.iter().map(|row| {
        let points = |share: f64| format!("{:+.1}", share * 100.0);
        let Interval { share, low, high } = row.difference;
        let difference = format!("{} [{}, {}]", points(share), points(low), points(high));
        let texts =
            [row.set.clone(), row.lang.clone(), row.cases.to_string(), percent(&row.first), percent(&row.second)];
        texts
            .into_iter()
            .chain([difference, row.gained.to_string(), row.lost.to_string(), format!("{:.3}", row.p)])
            .collect()
    });
    table(&head, 2, rows, &mut body);
    Page { title: "packlight eval --compare", body: &body, style: "", script: "" }.html()
}

fn figures(report: &Report, body: &mut String) {
    let selected = format!("all@{} [95 %]", report.k);
    let mut head = vec!["set".to_owned(), "language".into(), "cases".into()];
    head.extend(report.depths.iter().map(|depth| format!("recall@{depth}")));
    head.extend([selected, "MRR".into()]);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for set in &report.sets {
        for language in &set.languages {
            let figures = &language.figures;
            let mut row = vec![set.name.clone(), language.lang.clone(), figures.cases.to_string()];
            row.extend(figures.recall.iter().map(percent));
            row.extend([shown(&figures.selected), format!("{:.3}", figures.mrr)]);
            rows.push(row);
        }
    }
    if let Some(mean) = &report.mean {
        let mut row = vec!["mean of sets".to_owned(), super::report::ALL.into(), String::new()];
        row.extend(mean.recall.iter().map(percent));
        row.extend([percent(&mean.selected), format!("{:.3}", mean.mrr)]);
        rows.push(row);
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&head, 2, rows.into_iter(), body);
}

/// `words`: columns that hold no numbers.
fn table(head: &[&str], words: usize, rows: impl Iterator<Item = Vec<String>>, body: &mut String) {
    body.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for (at, text) in head.iter().enumerate() {
        let class = if at < words { "" } else { " class=\"number\"" };
        let _ = write!(body, "<th scope=\"col\"{class}>{}</th>", Text(text));
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        body.push_str("<tr>");
        for (at, text) in row.iter().enumerate() {
            let _ = match at < words {
                true => write!(body, "<td>{}</td>", name(text)),
                false => write!(body, "<td class=\"number\">{}</td>", Text(text)),
            };
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div>\n");
}

fn curve(set: &SetReport, k: Width, sweeps: &[Sweep]) -> Curve {
    let line = |language: &super::report::Language| Line {
        name: language.lang.clone(),
        points: (1..).map(f64::from).zip(language.figures.complete_curve.iter().copied()).collect(),
    };
    let taken = match k {
        Width::Fixed(count) => Some(count as f64),
        Width::Auto => set.whole().map(|figures| figures.taken),
    };
    let mut marks: Vec<(f64, String)> = taken.map(|taken| (taken, "selected".to_owned())).into_iter().collect();
    let whole = sweeps.iter().rfind(|sweep| sweep.set == set.name);
    marks.extend(whole.map(|sweep| (sweep.recommended as f64, format!("recommended {}", sweep.recommended))));
    Curve {
        title: format!("{}: cases with all their tools selected", set.name),
        x: Axis { title: "tools selected".into(), range: None, unit: Unit::Number },
        y: Axis { title: String::new(), range: Some((0.0, 1.0)), unit: Unit::Percent },
        lines: set.languages.iter().rev().map(line).collect(),
        marks,
    }
}

fn gaps(set: &SetReport, k: Width, body: &mut String) {
    let mut list = |title: String, lines: Vec<String>| {
        if lines.is_empty() {
            return;
        }
        let _ = writeln!(body, "<details><summary>{} ({})</summary>\n<ul>", Text(&title), lines.len());
        for line in lines.iter().take(LISTED) {
            let _ = writeln!(body, "<li>{}</li>", name(line));
        }
        body.push_str("</ul></details>\n");
    };
    let of = &set.name;
    list(format!("{of}: not among the {k} selected"), set.missing.iter().map(Missing::line).collect());
    list(format!("{of}: no case needs these tools"), set.uncovered.clone());
    let thin = set.thin.iter().map(|thin| format!("{}: {}", thin.tool, thin.why)).collect();
    list(format!("{of}: these descriptions are thin"), thin);
    list(format!("{of}: not in the roster"), set.unknown.iter().map(Missing::line).collect());
    list(format!("{of}: pass only because nothing is narrowed"), set.not_narrowed.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::figures::Figures;
    use crate::eval::report::Language;

    #[test]
    fn a_page_holds_its_curves_and_trusts_no_name() {
        let language = Language { lang: "en".into(), figures: Figures::of(&[(&[1], 12), (&[14], 12)]), found: 1.0 };
        let missing = Missing { prompt: "<script>alert(1)</script>".into(), ..Missing::default() };
        let set = SetReport {
            name: "<b>s".into(),
            languages: vec![language],
            missing: vec![missing],
            ..SetReport::default()
        };
        let report = Report {
            model: "m".into(),
            k: Width::Fixed(12),
            depths: super::super::figures::DEPTHS,
            sets: vec![set],
            mean: None,
        };
        let page = page(&report, &super::super::sweep::sweeps(&report), &[]);
        assert!(
            page.contains("<svg")
                && page.contains("&lt;script&gt;")
                && !page.contains("<script>")
                && !page.contains("<b>s")
        );
        assert!(page.contains("50.0 [") && !page.contains("http:") && !page.contains("https:"));
    }
}
