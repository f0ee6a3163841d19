//! Errors name the fault, its position, and a correction.

use tracepoint_query::{Engine, EngineOptions};

use crate::answers::{ask, open};
use tracepoint_query_tests::stores::{self, integer};
use tracepoint_query_tests::traces::Field;

#[tokio::test]
async fn errors_name_the_remedy() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::made(&trace, 3, "a", 0, vec![integer("sector")]);
    stores::store(&store, &trace, 1000);
    let engine = open(&store).await;
    for (sql, parts) in [
        ("SELECT * FROM \"disk:raed\"", &["no table \"disk:raed\"", "did you mean \"disk:read\"?", "--tables"][..]),
        ("SELECT * FROM zzzzzz", &["no table \"zzzzzz\"", "--tables"]),
        ("SELECT * FROM shop.answered", &["no table \"shop.answered\""]),
        ("SELECT * FROM disk:read", &["at line 1, column 19", "in double quotes: \"disk:read\""]),
        ("SELECT *\nFROM losses WHERE (events > 1", &["Expected: )", "at line 2, column 30"]),
        ("SELECT sektor\nFROM \"disk:read\"", &["sektor", "\"disk:read\".sector", "line 1, column 8"]),
        ("SELECT nofunction(1)", &["nofunction"]),
        ("SELECT * FROM latency('disk:read', 'disk:raed', 'n')", &["no table \"disk:raed\"", "\"disk:read\""]),
        ("SELECT * FROM latency('disk:read', 'losses')", &["latency: the column", "write latency("]),
        ("SELECT * FROM latency('disk:read', 'losses', n)", &["single quotes"]),
        ("SELECT * FROM latency('disk:read', 'disk:read', 'n')", &["the same", "lag("]),
        ("SELECT * FROM latency('disk:read', 'losses', 'n', after => 1)", &["no argument `after`"]),
        ("SELECT * FROM lost('disk:raed')", &["no table \"disk:raed\""]),
        ("SELECT * FROM lost()", &["lost: the event or stream is missing"]),
        ("CREATE TABLE t AS SELECT 1", &["only queries are run"]),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", &["only queries are run"]),
        ("INSERT INTO losses SELECT * FROM losses", &["only queries are run"]),
        ("SET datafusion.execution.batch_size = 1", &["only queries are run"]),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", &["only queries are run"]),
        ("SELECT 1 AS n INTO t", &["DDL"]),
        ("SELECT * FROM '/etc/passwd'", &["no table"]),
    ] {
        let error = ask(&engine, sql).await.expect_err(sql).to_string();
        for part in parts {
            assert!(error.contains(part), "{sql}: {error} has no {part:?}");
        }
    }
}

#[tokio::test]
async fn other_directories_are_no_stores() {
    let place = tempfile::tempdir().expect("a directory");
    let refused = async || {
        let Err(error) = Engine::open(place.path(), EngineOptions::default()).await else { panic!("it is no store") };
        error.to_string()
    };
    let error = refused().await;
    assert!(
        error.contains("is not a store: it has no `.tracepoint/store.json`") && error.contains("tracectl export"),
        "{error}"
    );
    std::fs::create_dir(place.path().join(".tracepoint")).expect("a directory");
    let identity = place.path().join(".tracepoint/store.json");
    std::fs::write(&identity, r#"{"format":"tracepoint-parquet","version":9}"#).expect("a file");
    assert!(refused().await.contains("version 9 is not supported"));
    std::fs::write(&identity, "{").expect("a file");
    assert!(refused().await.contains("store.json"));
}

#[tokio::test]
async fn a_file_that_is_removed_meanwhile_asks_for_a_repetition() {
    let place = tempfile::tempdir().expect("a directory");
    let (trace, store) = (place.path().join("trace"), place.path().join("store"));
    stores::made(&trace, 3, "a", 0, vec![integer("sector")]);
    stores::store(&store, &trace, 1000);
    let engine = open(&store).await;
    let day = std::fs::read_dir(&store).expect("a store").filter_map(Result::ok).map(|entry| entry.path());
    let day = day.into_iter().find(|path| path.to_string_lossy().contains("day=")).expect("a day");
    std::fs::remove_dir_all(day).expect("it is removed");
    let error = ask(&engine, "SELECT * FROM \"disk:read\"").await.expect_err("the file is gone").to_string();
    assert!(error.contains("was removed while the query ran") && error.contains("repeat the query"), "{error}");
}

/// The other tables are listed.
#[tokio::test]
async fn versions_without_common_columns_have_no_common_table() {
    let place = tempfile::tempdir().expect("a directory");
    let traces = place.path().join("traces");
    let fields = [Field::Struct(vec![Field::Text]), Field::Bytes(3)];
    for (number, field) in fields.into_iter().enumerate() {
        stores::made(&traces.join(number.to_string()), number as u64, "a", 0, vec![("f".to_owned(), field)]);
    }
    let store = place.path().join("store");
    stores::store(&store, &traces, 1000);
    for engine in [open(&store).await, Engine::open_any(&traces, EngineOptions::default()).await.expect("traces")] {
        let tables: Vec<_> = engine.tables().await.expect("tables").into_iter().map(|table| table.name).collect();
        assert!(["disk:read", "disk:read#2"].iter().all(|name| tables.iter().any(|table| table == name)), "{tables:?}");
        assert!(!tables.iter().any(|name| name == "disk:read#*"), "{tables:?}");
        let error = ask(&engine, "SELECT * FROM \"disk:read#*\"").await.expect_err("no common type").to_string();
        assert!(error.contains("the column \"f\" of \"disk:read#2\""), "{error}");
        assert!(error.contains("name the versions one by one"), "{error}");
    }
}
