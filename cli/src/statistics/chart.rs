//! A distribution as lines of text.

use std::fmt::Write;
use tracepoint_probes::snapshot::{Bucket, Distribution, Number};

pub(crate) const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Maximum number of rows; buckets are merged until they fit.
const MAX_ROWS: usize = 24;
/// Length of the longest bar, in characters.
const BAR: f64 = 40.0;
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A value for display: a duration has a unit.
pub(crate) fn value(value: f64, is_duration: bool) -> String {
    if !is_duration {
        return plain(value);
    }
    let (unit, scale) =
        [("s", 1e9), ("ms", 1e6), ("us", 1e3)].into_iter().find(|(_, scale)| value >= *scale).unwrap_or(("ns", 1.0));
    let scaled = value / scale;
    let digits = if scaled >= 100.0 || unit == "ns" {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.digits$}{unit}")
}

/// A number with five significant digits; an integer with all of them. Uses an exponent only if it is very small or large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most nine")]
fn plain(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if !(1e-5..1e15).contains(&value.abs()) {
        return format!("{value:.4e}");
    }
    let digits = (4.0 - value.abs().log10().floor()).max(0.0) as usize;
    let text = format!("{value:.digits$}");
    if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// A percentile for display, 0 being the minimum and 100 the maximum. An integer is exact, a fractional number is shown as the bounds of its bucket;
/// `None` without values.
pub(crate) fn percentile(values: &Distribution, percent: f64, is_duration: bool) -> Option<String> {
    let number = values.number(percent)?;
    let is_exact = || [values.number(0.0), values.number(100.0)].contains(&Some(number));
    Some(match number {
        Number::Integer(integer) if !is_duration => integer.to_string(),
        Number::Fraction(fraction) if !is_duration && is_exact() => shortest(fraction),
        number => value(number.to_f64(), is_duration),
    })
}

/// The shortest text that identifies this number.
fn shortest(number: f64) -> String {
    if (1e-5..1e15).contains(&number) { number.to_string() } else { format!("{number:e}") }
}

/// A mean for display, with up to three decimal places if the values are integers.
pub(crate) fn mean(values: &Distribution, is_duration: bool) -> Option<String> {
    let mean = values.mean()?;
    if is_duration {
        return Some(value(mean.round(), true));
    }
    if values.min() == values.max() {
        return percentile(values, 0.0, false);
    }
    let text = format!("{mean:.3}");
    let is_short = (1.0..1e15).contains(&mean) && mean.fract() != 0.0;
    Some(if is_short { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { value(mean, false) })
}

/// Lines with the bounds of each row, its count and a bar.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar")]
pub(crate) fn lines(distribution: &Distribution, is_duration: bool) -> Vec<String> {
    let rows = distribution.bins(MAX_ROWS);
    let most = rows.iter().map(|row| row.count).max().unwrap_or(1) as f64;
    let texts: Vec<_> = rows.iter().map(|row| (value(row.from, is_duration), value(row.to, is_duration))).collect();
    let width = texts.iter().flat_map(|(from, to)| [from.len(), to.len()]).max().unwrap_or(0);
    let count_width = most.to_string().len();
    let line = |(row, (from, to)): (&Bucket, &(String, String))| {
        let eighths = (row.count as f64 / most * BAR * 8.0).ceil() as usize;
        let mut line = format!("  [{from:>width$}, {to:>width$})  {:>count_width$}  ", row.count);
        let _ = write!(line, "{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8]);
        line.trim_end().to_owned()
    };
    rows.iter().zip(&texts).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn values_have_units_and_few_digits() {
        for (ns, text) in
            [(0.0, "0ns"), (999.0, "999ns"), (1500.0, "1.50us"), (25_400_000.0, "25.4ms"), (3.2e11, "320s")]
        {
            assert_eq!(value(ns, true), text);
        }
        for (number, text) in [
            (512.0, "512"),
            (0.25, "0.25"),
            (0.5, "0.5"),
            (1004.1234, "1004.1"),
            (123_456.7, "123457"),
            (0.000_123_456, "0.00012346"),
            (-2.5, "-2.5"),
            (1.25e-7, "1.2500e-7"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(value(number, false), text);
        }
    }
}
