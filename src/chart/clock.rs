//! Moments as UTC text. NOT the time now: that comes in as an argument.

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// Days since the epoch of a moment in seconds; nonsense is day 0.
pub fn day(seconds: f64) -> i64 {
    if seconds.is_finite() { (seconds / DAY as f64).floor() as i64 } else { 0 }
}

/// `2026-11-30` of days since the epoch.
pub fn date(day: i64) -> String {
    // Years of four digits: what lies beyond is a broken clock.
    let day = day.clamp(-719_528, 2_932_896);
    // Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", doy - (153 * mp + 2) / 5 + 1)
}

/// `2026-11-30 13:20:05`.
pub fn utc(seconds: f64) -> String {
    let rest = if seconds.is_finite() { (seconds.floor() as i64).rem_euclid(DAY) } else { 0 };
    format!("{} {:02}:{:02}:{:02}", date(day(seconds)), rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(utc(0.0), "1970-01-01 00:00:00");
        assert_eq!(utc(1_796_044_805.9), "2026-11-30 13:20:05");
        assert_eq!(utc(951_782_400.0), "2000-02-29 00:00:00");
        assert_eq!(utc(-1.0), "1969-12-31 23:59:59");
        assert_eq!(utc(f64::NAN), "1970-01-01 00:00:00");
        assert_eq!(utc(f64::MAX).get(..4), Some("9999"));
    }
}
