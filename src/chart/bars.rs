//! Horizontal bars as a table: a row is a name, a bar and the value, so that it reads without colours, without the
//! picture and on a telephone. Values may be negative, and may carry an interval. NOT their meaning.

use std::fmt::Write;

use super::html::{Text, name};

/// Bars under one another, on one scale that always holds zero.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    pub title: String,
    pub rows: Vec<Bar>,
    /// The scale's end; `None`: the largest value.
    pub most: Option<f64>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Bar {
    /// From outside.
    pub name: String,
    pub value: f64,
    /// What is printed beside it.
    pub shown: String,
    /// Where the true value is likely to lie.
    pub interval: Option<(f64, f64)>,
    pub tone: Tone,
}

/// What a bar says beside its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    Muted,
}

impl Tone {
    pub fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Muted => "muted",
        }
    }
}

impl Bars {
    /// Markup; nothing without rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let ends = |row: &Bar| {
            let (low, high) = row.interval.unwrap_or((row.value, row.value));
            [row.value, low, high].into_iter().filter(|value| value.is_finite())
        };
        let low = self.rows.iter().flat_map(ends).fold(0.0, f64::min);
        let high = self.most.unwrap_or_else(|| self.rows.iter().flat_map(ends).fold(0.0, f64::max));
        let span = if high - low > 0.0 { high - low } else { 1.0 };
        let place =
            |value: f64| if value.is_finite() { ((value - low) / span * 1000.0).clamp(0.0, 1000.0) } else { 0.0 };
        let mut out = format!("<table class=\"bars\"><caption>{}</caption><tbody>\n", Text(&self.title));
        for row in &self.rows {
            let (from, to) = (place(row.value.min(0.0)), place(row.value.max(0.0)));
            let _ = write!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"bar\"><svg viewBox=\"0 0 1000 16\" \
                 preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"{}\" x=\"{from:.1}\" y=\"2\" \
                 width=\"{:.1}\" height=\"12\"/>",
                name(&row.name),
                row.tone.class(),
                to - from
            );
            if low < 0.0 {
                let zero = place(0.0);
                let _ = write!(out, "<path class=\"axis\" d=\"M{zero:.1} 0V16\"/>");
            }
            if let Some((least, most)) = row.interval {
                let (least, most) = (place(least), place(most));
                let _ = write!(
                    out,
                    "<path class=\"interval\" d=\"M{least:.1} 8H{most:.1}M{least:.1} 4V12M{most:.1} 4V12\"/>"
                );
            }
            let _ = writeln!(out, "</svg></td><td class=\"number\">{}</td></tr>", Text(&row.shown));
        }
        out.push_str("</tbody></table>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_stands_left_of_zero() {
        let bar = |name: &str, value: f64| Bar {
            name: name.into(),
            value,
            shown: value.to_string(),
            interval: Some((value - 1.0, value + 1.0)),
            tone: Tone::Bad,
        };
        let html = Bars { title: "t".into(), rows: vec![bar("<a>", -4.0), bar("b", 4.0)], most: None }.html();
        assert!(html.contains("<bdi>&lt;a&gt;</bdi>"), "{html}");
        assert!(html.contains("x=\"100.0\" y=\"2\" width=\"400.0\""), "{html}");
        assert!(html.contains("x=\"500.0\" y=\"2\" width=\"400.0\""), "{html}");
        assert!(html.contains("M0.0 8H200.0"), "{html}");
        assert_eq!(Bars::default().html(), "");
    }

    #[test]
    fn nonsense_makes_no_nonsense_markup() {
        let row = Bar { name: "n".into(), value: f64::NAN, shown: "–".into(), interval: None, tone: Tone::Plain };
        assert!(!Bars { title: String::new(), rows: vec![row], most: Some(0.0) }.html().contains("NaN"));
    }
}
