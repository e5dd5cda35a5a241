//! Sizes and durations as people write them. NOT fractions: `1.5h` is `90m`.

use std::time::Duration;

const SIZES: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Milliseconds of each unit.
const DURATIONS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// `64MiB`, in bytes.
pub(super) fn size(text: &str) -> Result<usize, String> {
    amount(text, &SIZES)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| format!("`{text}` is not a size, write a whole number and a unit: 512KiB, 64MiB, 1GiB"))
}

/// `300ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    amount(text, &DURATIONS)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("`{text}` is not a duration, write a whole number and a unit: 300ms, 30s, 5m, 1h"))
}

fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(name, _)| *name == unit.trim_start())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("10 kB"), Ok(10_000));
        assert_eq!(size("7B"), Ok(7));
        for wrong in ["", "64", "MiB", "-1MiB", "1.5MiB", "64mib", "99999999999GiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reads_durations() {
        assert_eq!(duration("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "300", "1.5s", "-1s", "3 weeks"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
