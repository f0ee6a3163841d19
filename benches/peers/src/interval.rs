//! The median of a sample, with its confidence interval.

use serde::{Deserialize, Serialize};

/// A median with its 95 % confidence interval.
///
/// The interval lies between two order statistics: if each value is as likely to be above the true median as below it, the
/// number of values below has a binomial distribution, for any distribution of the values. The ranks are the innermost ones that
/// leave at most 2.5 % on each side. Fewer than six values cannot reach that; the interval then spans all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of one or more values.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (n, rank) = (values.len(), rank(values.len()));
        let median = f64::midpoint(values[(n - 1) / 2], values[n / 2]);
        Self { median, low: values[rank], high: values[n - 1 - rank] }
    }
}

/// The number of values outside the interval on each side.
fn rank(n: usize) -> usize {
    let mut probability = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut below = probability;
    let mut rank = 0;
    while below <= 0.025 && rank < n / 2 {
        rank += 1;
        probability *= (n - rank + 1) as f64 / rank as f64;
        below += probability;
    }
    rank.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{Interval, rank};

    /// Values from tables of the sign test; the rank of the order statistic, counted from one, is one more.
    #[test]
    fn ranks_are_those_of_the_tables() {
        for (n, expected) in [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (21, 5), (31, 9), (41, 13)] {
            assert_eq!(rank(n), expected, "of {n}");
        }
    }

    #[test]
    fn few_values_give_the_whole_range() {
        assert_eq!(Interval::of(vec![3.0, 1.0, 2.0]), Interval { median: 2.0, low: 1.0, high: 3.0 });
    }
}
