//! The engine reports exactly the data that may be missing from an answer.

use std::fs;

use crate::answers::{ask, missing, open};
use tracepoint_query_tests::stores::{self, integer};

#[tokio::test]
async fn losses_are_told_where_the_query_could_have_seen_them() {
    let place = tempfile::tempdir().expect("a directory");
    let engine = open(&stores::shop(place.path())).await;
    let lost = ask(&engine, "SELECT sum(events), max(to_ts) FROM losses").await.expect("losses");
    let events = lost[0][0].as_u64().expect("a number");
    assert!(events > 0, "the small ring is too small");
    let of = async |sql: &str| missing(&engine, sql).await;
    let all = of("SELECT count(*) FROM \"shop:answered\"").await;
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].starts_with(&format!("{events} events were lost in the channels of \"shop:answered\"")), "{all:?}");
    for sql in [
        "SELECT count(*) FROM \"shop:answered\" WHERE session = 'lossy'",
        "SELECT count(*) FROM events WHERE event LIKE 'shop%'",
        "SELECT (SELECT count(*) FROM \"shop:asked\")",
        "SELECT count(*) FROM latency('shop:asked', 'shop:answered', 'id')",
        "SELECT count(*) FROM \"shop:answered\" WHERE day >= '2020-01-01' AND ts > '2020-01-01 00:00:00Z'",
    ] {
        assert_eq!(of(sql).await.len(), 1, "{sql}");
    }
    for sql in [
        "SELECT count(*) FROM \"shop:answered\" WHERE session = 'shop'",
        "SELECT count(*) FROM \"shop:answered\" WHERE ts < '2020-01-01 00:00:00Z'",
        "SELECT count(*) FROM \"shop:answered\" WHERE day < '2020-01-01'",
        "SELECT count(*) FROM \"shop:answered\" WHERE host = 'nowhere'",
        "SELECT count(*) FROM \"shop:answered\" WHERE stream = '1/2/3'",
        "SELECT count(*) FROM \"disk:read\"",
        "SELECT count(*) FROM losses",
        "SELECT 1",
    ] {
        assert_eq!(of(sql).await, [""; 0], "{sql}");
    }
}

#[tokio::test]
async fn damage_and_counts_that_are_not_final_are_told() {
    let place = tempfile::tempdir().expect("a directory");
    let (whole, cut, store) = (place.path().join("whole"), place.path().join("cut"), place.path().join("store"));
    stores::record(&whole, "whole", 16 << 20, 1000);
    stores::record(&cut, "cut", 16 << 20, 1000);
    let account = cut.join(".account/account.json");
    let text = fs::read_to_string(&account).expect("an account");
    let open_account =
        text.replace("\"complete\": true", "\"complete\": false").replace("\"complete\":true", "\"complete\":false");
    assert_ne!(text, open_account);
    fs::write(&account, open_account).expect("a file");
    let stream = fs::read_dir(&cut).expect("a trace").filter_map(Result::ok).map(|entry| entry.path());
    let is_stream = |path: &std::path::PathBuf| path.is_file() && !path.ends_with("metadata");
    let stream = stream.into_iter().find(is_stream).expect("a stream");
    let mut bytes = fs::read(&stream).expect("a file");
    bytes.truncate(bytes.len() / 2);
    fs::write(&stream, bytes).expect("a file");
    stores::store(&store, &whole, 1000);
    stores::store(&store, &cut, 1000);
    let engine = open(&store).await;
    let told = missing(&engine, "SELECT count(*) FROM \"shop:asked\"").await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("1 part of the traces is damaged in the channels of \"shop:asked\""), "{told:?}");
    assert!(told[1].starts_with("the counts of 1 trace of this time are not final"), "{told:?}");
    assert_eq!(missing(&engine, "SELECT count(*) FROM \"shop:asked\" WHERE session = 'whole'").await, [""; 0]);
    assert_eq!(missing(&engine, "SELECT count(*) FROM \"shop:asked\" WHERE day < '2020-01-01'").await, [""; 0]);
}

#[tokio::test]
async fn a_store_without_losses_has_the_table() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    let events = stores::made(&trace, 3, "a", 0, vec![integer("n")]);
    stores::store(&store, &trace, 1000);
    let engine = open(&store).await;
    assert_eq!(ask(&engine, "SELECT count(*), sum(events) FROM losses").await.expect("no rows")[0][0], 0);
    assert_eq!(ask(&engine, "SELECT count(*) FROM \"disk:read\"").await.expect("rows")[0][0], events);
    assert_eq!(missing(&engine, "SELECT * FROM \"disk:read\"").await, [""; 0]);
}
