//! The functions for traces on known rows.

use serde_json::{Value, json};

use crate::answers::{ask, open};
use tracepoint_query_tests::stores;

#[tokio::test]
async fn latencies_pair_events_whose_keys_are_used_again() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::record(&trace, "shop", 16 << 20, 5000);
    stores::store(&store, &trace, 1000);
    let engine = open(&store).await;
    let of = async |sql: &str| ask(&engine, sql).await.expect("an answer");
    // Of the ids 0 to 4999, each 97th has no answer, and each one of the form 101 n + 1 has no request.
    let (unanswered, unasked) = (0..5000).fold((0, 0), |(unanswered, unasked), n| {
        (unanswered + u64::from(n % 97 == 0 && n % 101 != 1), unasked + u64::from(n % 101 == 1 && n % 97 != 0))
    });
    let neither = (0..5000).filter(|n| n % 97 == 0 && n % 101 == 1).count() as u64;
    let pairs = 5000 - unanswered - unasked - neither;
    let counts =
        "SELECT count(nanos), count(*) FILTER (WHERE end_ts IS NULL), count(*) FILTER (WHERE begin_ts IS NULL) FROM";
    let found = of(&format!("{counts} latency('shop:asked', 'shop:answered', 'id')")).await;
    assert_eq!(found, [[json!(pairs), json!(unanswered), json!(unasked)]]);
    let with = of(&format!("{counts} latency('shop:asked', 'shop:answered', 'id', 'session', 'pid') AS l")).await;
    assert_eq!(with, found);
    let wrong = "SELECT count(*) FROM latency('shop:asked', 'shop:answered', 'id')
        WHERE nanos < 0 OR nanos <> CAST(end_ts AS BIGINT) - CAST(begin_ts AS BIGINT) OR pid IS NULL OR host IS NULL";
    assert_eq!(of(wrong).await, [[json!(0)]]);
    // The columns of a pair identify its two events.
    let joined = "SELECT count(*) FROM latency('shop:asked', 'shop:answered', 'id') AS l
        JOIN \"shop:asked\" AS b ON b.stream = l.begin_stream AND b.seq = l.begin_seq AND b.ts = l.begin_ts AND b.id = l.id
        JOIN \"shop:answered\" AS e ON e.stream = l.end_stream AND e.seq = l.end_seq AND e.ts = l.end_ts AND e.id = l.id";
    assert_eq!(of(joined).await, [[json!(pairs)]]);
    let times = of("SELECT min(ts), max(ts) FROM \"shop:asked\"").await;
    let [first, last] = [0, 1].map(|column| times[0][column].as_i64().expect("a time"));
    let since = format!("since => to_timestamp_nanos({}), until => to_timestamp_nanos({last})", first + 1);
    let limited = of(&format!("SELECT count(begin_ts), min(begin_ts), max(begin_ts) FROM latency('shop:asked', 'shop:answered', 'id', {since})")).await;
    let expected = of(&format!("SELECT count(*), min(ts), max(ts) FROM \"shop:asked\" WHERE CAST(ts AS BIGINT) > {first} AND CAST(ts AS BIGINT) < {last}")).await;
    assert_eq!(limited, expected);
}

#[tokio::test]
async fn lost_counts_by_event_stream_and_time() {
    let place = tempfile::tempdir().expect("a directory");
    let engine = open(&stores::shop(place.path())).await;
    let of = async |sql: &str| ask(&engine, sql).await.expect("an answer").remove(0);
    let all = of("SELECT sum(events), sum(events) AS at_least, count(*) FROM losses").await;
    assert_eq!(of("SELECT * FROM lost('shop:asked')").await, all);
    assert_eq!(of("SELECT * FROM lost('disk:read')").await, [json!(0), json!(0), json!(0)]);
    assert_eq!(
        of("SELECT events FROM lost('shop:asked', '2020-01-01 00:00:00Z', '2020-01-02 00:00:00Z')").await,
        [json!(0)]
    );
    assert_eq!(of("SELECT events FROM lost('shop:asked', until => '2020-01-02 00:00:00Z')").await, [json!(0)]);
    assert_eq!(of("SELECT events FROM lost('shop:asked', now() - INTERVAL '1 day')").await, [all[0].clone()]);
    let stream = of("SELECT stream, sum(events) FROM losses GROUP BY stream LIMIT 1").await;
    let name = stream[0].as_str().expect("a stream");
    assert_eq!(of(&format!("SELECT events FROM lost('{name}')")).await, [stream[1].clone()]);
    assert_eq!(of("SELECT events FROM lost('a/b/c')").await, [Value::from(0)]);
}
