//! Numbers as people read them, with a real minus sign. NOT rounding for further arithmetic.

/// `1,234,567`, with a minus where it is one.
pub fn count(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(sign(number < 0));
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `950`, `12.4k`, `3.10M`, `1.20G`: three figures that say the size.
pub fn short(number: i64) -> String {
    const STEPS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let size = number.unsigned_abs() as f64;
    let sign = sign(number < 0);
    for (step, letter) in STEPS {
        let value = size / step;
        // 999,999 must not become 1000k: the next step up begins where rounding would reach it.
        if value >= 0.999_5 {
            return match value {
                v if v < 9.995 => format!("{sign}{v:.2}{letter}"),
                v if v < 99.95 => format!("{sign}{v:.1}{letter}"),
                v => format!("{sign}{v:.0}{letter}"),
            };
        }
    }
    format!("{sign}{size}")
}

/// US dollars: two decimals, or as many as a small sum needs.
pub fn usd(sum: f64) -> String {
    if !sum.is_finite() {
        return "–".to_owned();
    }
    let size = sum.abs();
    let decimals = match size {
        s if s >= 0.995 || s == 0.0 => 2,
        s if s >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{size:.decimals$}");
    let is_zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    format!("{}${whole}.{rest}", sign(sum < 0.0 && !is_zero))
}

/// A share from 0 to 1 as `97.3 %`; `–` for no number.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{:.1}", (share * 100.0).abs());
    format!("{}{text} %", sign(share < 0.0 && text != "0.0"))
}

/// Seconds as `850 µs`, `12.5 ms`, `3.2 s`.
pub fn seconds(time: f64) -> String {
    match time {
        t if !t.is_finite() => "–".to_owned(),
        t if t < 0.001 => format!("{:.0} µs", t * 1e6),
        t if t < 1.0 => format!("{:.1} ms", t * 1e3),
        t => format!("{t:.1} s"),
    }
}

fn sign(is_negative: bool) -> &'static str {
    if is_negative { "−" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!([0, 999, -1000, 1_234_567].map(count), ["0", "999", "−1,000", "1,234,567"]);
        assert_eq!(
            [0, 950, -1_240, 99_960, 999_999, 3_104_000].map(short),
            ["0", "950", "−1.24k", "100k", "1.00M", "3.10M"]
        );
        assert_eq!(short(i64::MIN), "−9223372037G");
        assert_eq!(
            [0.0, 12.345, -1234.5, 0.0421, -0.000_000_1, f64::NAN].map(usd),
            ["$0.00", "$12.35", "−$1,234.50", "$0.0421", "$0.000000", "–"]
        );
        assert_eq!([0.973, -0.000_01, f64::NAN].map(percent), ["97.3 %", "0.0 %", "–"]);
        assert_eq!([0.000_85, 0.0125, 3.21].map(seconds), ["850 µs", "12.5 ms", "3.2 s"]);
    }
}
