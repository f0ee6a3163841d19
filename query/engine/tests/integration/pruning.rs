//! A query reads only the files, row groups and pages that it needs, according to its plan and its metrics.

use std::path::Path;

use tracepoint_query::Engine;

use crate::answers::{ask, open};
use tracepoint_query_tests::stores::{self, integer};

/// The text of `EXPLAIN ANALYZE`.
async fn analyzed(engine: &Engine, sql: &str) -> String {
    let rows = ask(engine, &format!("EXPLAIN ANALYZE {sql}")).await.expect("a plan");
    rows.iter().flatten().filter_map(|value| value.as_str()).collect::<Vec<_>>().join("\n")
}

/// Number of opened files.
fn files(plan: &str) -> u64 {
    let metric = "files_ranges_pruned_statistics";
    let (pruned, matched) = if plan.contains(metric) { counted(plan, metric) } else { (0, 0) };
    pruned + matched
}

/// Parses a metric: `(pruned, matched)` from `5 total → 2 matched` or `10.00 K total → 5.00 K matched`.
fn counted(plan: &str, metric: &str) -> (u64, u64) {
    let start = plan.find(&format!("{metric}=")).unwrap_or_else(|| panic!("no {metric}: {plan}"));
    let text = &plan[start + metric.len() + 1..];
    let words: Vec<_> = text[..text.find(',').unwrap_or(text.len())].split(' ').collect();
    let before = |noun: &str| {
        let at = words.iter().position(|word| *word == noun).unwrap_or_else(|| panic!("{metric}: {words:?}"));
        let is_thousands = words[at - 1] == "K";
        let (whole, decimals) =
            words[at - 1 - usize::from(is_thousands)].split_once('.').unwrap_or((words[at - 1], ""));
        let digits = if is_thousands { format!("{whole}{decimals:0<3}") } else { whole.to_owned() };
        digits.parse::<u64>().unwrap_or_else(|_| panic!("{metric}: {words:?}"))
    };
    (before("total") - before("matched"), before("matched"))
}

/// A store of six days of two hosts, in files of several row groups.
fn store(place: &Path) -> std::path::PathBuf {
    let target = place.join("store");
    for day in 0..6 {
        for (number, host) in ["a", "b c"].into_iter().enumerate() {
            let trace = place.join(format!("{day}{host}"));
            stores::made(&trace, 2 * day + number as u64, host, day, vec![integer("sector")]);
            stores::store(&target, &trace, 50);
        }
    }
    target
}

#[tokio::test]
async fn files_of_other_partitions_and_times_are_not_opened() {
    let place = tempfile::tempdir().expect("a directory");
    let engine = open(&store(place.path())).await;
    let read = async |condition: &str| {
        let sql = format!("SELECT count(sector) FROM \"disk:read\" WHERE {condition}");
        files(&analyzed(&engine, &sql).await)
    };
    assert_eq!(read("sector >= 0").await, 12);
    assert_eq!(read("day = '2026-11-24'").await, 2);
    assert_eq!(read("day > '2026-11-24' AND host = 'b c'").await, 4);
    assert_eq!(read("host IN ('b c', 'd')").await, 6);
    assert_eq!(read("session = 'others'").await, 0);
    assert_eq!(read("ts >= '2026-11-25 00:00:00Z' AND ts < '2026-11-26 00:00:00Z'").await, 2);
    assert_eq!(read("ts > '2026-11-27 23:00:00Z' OR (day = '2026-11-23' AND host = 'a')").await, 5);
    let all = analyzed(&engine, "SELECT count(seq) FROM events WHERE event = 'disk:read' AND day = '2026-11-23'").await;
    assert_eq!(files(&all), 2);
}

#[tokio::test]
async fn row_groups_and_pages_of_other_times_are_skipped() {
    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    stores::record(&trace, "shop", 16 << 20, 200_000);
    for (row_group_rows, metric, least) in
        [(10_000, "row_groups_pruned_statistics", 15), (200_000, "page_index_rows_pruned", 100_000)]
    {
        let target = place.path().join(metric);
        stores::store(&target, &trace, row_group_rows);
        let engine = open(&target).await;
        let times =
            ask(&engine, "SELECT CAST(min(ts) AS BIGINT), CAST(max(ts) AS BIGINT) FROM \"shop:answered\"").await;
        let [first, last] = [0, 1].map(|column| times.as_ref().expect("times")[0][column].as_i64().expect("a time"));
        let middle = first + (last - first) / 2;
        let condition = format!("ts BETWEEN to_timestamp_nanos({middle}) AND to_timestamp_nanos({})", middle + 100_000);
        let plan = analyzed(&engine, &format!("SELECT sum(nanos) FROM \"shop:answered\" WHERE {condition}")).await;
        let (pruned, matched) = counted(&plan, metric);
        assert!(pruned >= least && matched < pruned, "{metric}: {pruned} pruned, {matched} not: {plan}");
    }
}
