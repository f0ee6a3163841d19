//! Time limits in filters.

use std::ops::Range;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// The range of `ts`, in nanoseconds since the epoch, that comparisons with constants allow. Rows outside of it cannot match.
pub(super) fn times(filters: &[Expr]) -> Range<Option<i64>> {
    let mut times = None..None;
    for comparison in filters.iter().flat_map(|filter| split_conjunction(filter)) {
        let Some((op, time)) = comparison_of_ts(comparison) else { continue };
        let (since, until) = match op {
            Operator::Gt => (time.checked_add(1), None),
            Operator::GtEq => (Some(time), None),
            Operator::Lt => (None, Some(time)),
            Operator::LtEq => (None, time.checked_add(1)),
            Operator::Eq => (Some(time), time.checked_add(1)),
            _ => continue,
        };
        times.start = times.start.max(since);
        times.end = times.end.into_iter().chain(until).min();
    }
    times
}

/// Parses a comparison of `ts` with a time.
fn comparison_of_ts(filter: &Expr) -> Option<(Operator, i64)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    let is_ts = |expr: &Expr| matches!(expr, Expr::Column(column) if column.name == "ts");
    let time = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::TimestampNanosecond(time, _), _) => *time,
        _ => None,
    };
    if is_ts(left) {
        Some((*op, time(right)?))
    } else if is_ts(right) {
        Some((op.swap()?, time(left)?))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    fn time(ns: i64) -> Expr {
        lit(ScalarValue::TimestampNanosecond(Some(ns), Some("UTC".into())))
    }

    #[test]
    fn comparisons_with_times_are_ranges() {
        let ts = || col("ts");
        assert_eq!(times(&[ts().gt_eq(time(5)), ts().lt(time(9))]), Some(5)..Some(9));
        assert_eq!(times(&[ts().gt(time(5)).and(ts().lt_eq(time(9))), ts().gt(time(2))]), Some(6)..Some(10));
        assert_eq!(times(&[time(5).lt_eq(ts()), ts().lt(time(9)), ts().lt(time(7))]), Some(5)..Some(7));
        assert_eq!(times(&[ts().eq(time(5))]), Some(5)..Some(6));
        assert_eq!(times(&[ts().lt(time(5)).or(ts().gt(time(9)))]), None..None);
        assert_eq!(times(&[col("seq").gt(time(5)), ts().not_eq(time(5))]), None..None);
        assert_eq!(times(&[ts().gt(time(i64::MAX))]), None..None, "the filter is applied to the rows as well");
    }
}
