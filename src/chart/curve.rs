//! Lines over one axis as inline SVG with a legend beside it. NOT smoothing: a line joins what was measured.

use std::fmt::Write;

use super::html::{Text, name};

/// Some lines on one pair of axes.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// Upright marks: a place on x and what it is.
    pub marks: Vec<(f64, String)>,
}

/// One axis.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    pub title: String,
    /// Both ends; `None`: what the lines need.
    pub range: Option<(f64, f64)>,
    pub unit: Unit,
}

/// How a tick is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    #[default]
    Number,
    /// A share from 0 to 1.
    Percent,
    Usd,
}

/// One line. Its tone is its place.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// From outside.
    pub name: String,
    /// x and y, x rising.
    pub points: Vec<(f64, f64)>,
}

/// User units. At 390 px of a telephone a letter of 13 is still one of 9.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 42.0;
/// Tones that can be told apart; more lines than that repeat them.
const TONES: usize = 6;

impl Curve {
    /// Markup; nothing without a point.
    pub fn html(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points).filter(|(x, y)| x.is_finite() && y.is_finite());
        if points().next().is_none() {
            return String::new();
        }
        let (left, right) = self.x.range.unwrap_or_else(|| ends(points().map(|(x, _)| *x)));
        let (low, high) = self.y.range.unwrap_or_else(|| ends(points().map(|(_, y)| *y).chain([0.0])));
        let across = |x: f64| LEFT + share(x, left, right) * (WIDTH - LEFT - RIGHT);
        let up = |y: f64| HEIGHT - BOTTOM - share(y, low, high) * (HEIGHT - TOP - BOTTOM);
        let mut out = format!(
            "<figure class=\"curve\"><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             aria-label=\"{}\">\n",
            Text(&self.title),
            Text(&self.title)
        );
        let (floor, end) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for tick in ticks(low, high) {
            let y = up(tick);
            let _ = write!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{end}\"/>");
            let (x, y, shown) = (LEFT - 8.0, y + 4.0, self.y.unit.shown(tick, high - low));
            let _ = writeln!(out, "<text class=\"tick end\" x=\"{x}\" y=\"{y:.1}\">{shown}</text>");
        }
        for tick in ticks(left, right) {
            let (x, y, shown) = (across(tick), floor + 18.0, self.x.unit.shown(tick, right - left));
            let _ = writeln!(out, "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{y}\">{shown}</text>");
        }
        let _ = writeln!(out, "<path class=\"axis\" d=\"M{LEFT} {floor}H{end}\"/>");
        let (x, y) = (f64::midpoint(LEFT, end), HEIGHT - 6.0);
        let _ = writeln!(out, "<text class=\"title middle\" x=\"{x}\" y=\"{y}\">{}</text>", Text(&self.x.title));
        for (index, (at, what)) in self.marks.iter().enumerate() {
            let x = across(*at);
            // On the side where there is room.
            let (place, shift) = if x > WIDTH / 2.0 { ("end", -5.0) } else { ("start", 5.0) };
            let _ = writeln!(
                out,
                "<path class=\"mark\" d=\"M{x:.1} {TOP}V{floor}\"/><text class=\"note {place}\" x=\"{:.1}\" \
                 y=\"{:.1}\">{}</text>",
                x + shift,
                floor - 8.0 - 16.0 * index as f64,
                Text(what)
            );
        }
        for (index, line) in self.lines.iter().enumerate() {
            let mut path = String::new();
            for (x, y) in line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()) {
                let letter = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(path, "{letter}{:.1} {:.1}", across(*x), up(*y));
            }
            let _ = writeln!(out, "<path class=\"line tone{}\" d=\"{path}\"/>", index % TONES);
        }
        out.push_str("</svg>\n<ul class=\"legend\">");
        for (index, line) in self.lines.iter().enumerate() {
            let _ = write!(
                out,
                "<li><svg class=\"key\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"tone{}\" width=\"12\" \
                 height=\"12\" rx=\"3\"/></svg>{}</li>",
                index % TONES,
                name(&line.name)
            );
        }
        out.push_str("</ul>");
        if self.y.title.is_empty() {
            out.push_str("</figure>\n");
        } else {
            let _ = writeln!(out, "<p class=\"hint\">{}</p></figure>", Text(&self.y.title));
        }
        out
    }
}

impl Unit {
    fn shown(self, value: f64, span: f64) -> String {
        let decimals = |step: f64| (-step.log10()).ceil().clamp(0.0, 6.0) as usize;
        match self {
            Self::Number => format!("{value:.*}", decimals(span / 4.0)),
            Self::Percent => format!("{:.*} %", decimals(span * 25.0), value * 100.0),
            Self::Usd => format!("${value:.*}", decimals(span / 4.0)),
        }
    }
}

fn share(value: f64, low: f64, high: f64) -> f64 {
    if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Three to seven round numbers between the ends.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return vec![low];
    }
    let rough = span / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).take(20).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 24.0), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(ticks(-3.0, 3.0), [-2.0, 0.0, 2.0]);
        assert_eq!(ticks(4.0, 4.0), [4.0]);
        assert_eq!(Unit::Percent.shown(0.95, 0.1), "95 %");
        assert_eq!(Unit::Usd.shown(0.25, 1.0), "$0.2");
    }

    #[test]
    fn a_curve_is_drawn_in_its_box_and_escaped() {
        let line = Line { name: "<en>".into(), points: vec![(1.0, 0.5), (12.0, 1.0), (20.0, f64::NAN)] };
        let marks = vec![(12.0, "k <now>".to_owned())];
        let html = Curve { title: "recall".into(), lines: vec![line], marks, ..Curve::default() }.html();
        assert!(html.contains("<bdi>&lt;en&gt;</bdi>") && html.contains("k &lt;now&gt;"), "{html}");
        assert!(html.contains("d=\"M56.0 117.0L506.0 16.0\""), "{html}");
        assert!(!html.contains("NaN"));
        assert_eq!(Curve::default().html(), "");
    }
}
