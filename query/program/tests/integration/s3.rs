//! Stores in S3, served by moto, an independent implementation.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::duckdb::read;
use crate::killed::{large_trace, visible};
use crate::recorded::record;
use crate::{seed, skip::skip, text};
use tracepoint_query_tests::traces::{EventKind, Field, Random, TraceSpec};

/// A server that ends with this process.
struct Server {
    port: u16,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _process: Child,
}

/// The contents of the Parquet files below a directory, without their names.
fn contents(directory: &Path) -> BTreeSet<Vec<u8>> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let found = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => contents(&path),
        Some(extension) if extension == "parquet" => BTreeSet::from([fs::read(path).expect("a file")]),
        _ => BTreeSet::new(),
    };
    entries.flat_map(found).collect()
}

/// The server shared by all tests; `None` if moto is missing and may be.
fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let packages = root.join("../../target/tools/moto");
        if !packages.join("moto").is_dir() {
            skip("moto from PyPI is not installed", "Run scripts/setup.sh");
            return None;
        }
        let mut command = Command::new("python3");
        let command = command.arg(root.join("tests/s3/serve.py")).env("PYTHONPATH", packages);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("pipes");
        let (mut stdout, mut line) = (BufReader::new(stdout), String::new());
        stdout.read_line(&mut line).expect("a line");
        let port = line.trim().parse().expect("the server has started");
        Some(Server { port, pipes: Mutex::new((stdin, stdout)), _process: child })
    };
    SERVER.get_or_init(start).as_ref()
}

impl Server {
    fn told(&self, command: &str) {
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(pipes.0, "{command}").expect("the server lives");
        let mut line = String::new();
        pipes.1.read_line(&mut line).expect("a line");
        assert_eq!(line, "done\n", "{command}");
    }
}

/// A bucket used by one test alone.
struct Bucket {
    server: &'static Server,
    name: &'static str,
}

impl Bucket {
    fn new(name: &'static str) -> Option<Self> {
        let server = server()?;
        server.told(&format!("bucket {name}"));
        Some(Self { server, name })
    }

    fn url(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", self.name)
    }

    /// The program with this access key in its environment.
    fn program(&self, key: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl-query"));
        command.args(arguments).env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.server.port));
        command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", "secret").env_remove("AWS_SESSION_TOKEN");
        command
    }

    fn run(&self, key: &str, arguments: &[&str]) -> Output {
        self.program(key, arguments).output().expect("the program runs")
    }

    /// Runs a command, and parses its JSON output.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run("writer", arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Runs a command that must fail, and returns its error.
    fn error(&self, key: &str, arguments: &[&str]) -> String {
        let output = self.run(key, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{error}");
        error
    }

    /// Copies the objects to files.
    fn copied(&self, place: &Path, name: &str) -> PathBuf {
        let directory = place.join(name);
        self.server.told(&format!("copy {} {}", self.name, text(&directory)));
        directory
    }
}

#[test]
fn a_store_in_s3_is_that_of_a_directory() {
    let Some(bucket) = Bucket::new("same") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let [trace, second, local] = ["trace", "second", "local"].map(|name| place.path().join(name));
    record(&trace, 16 << 20, 100_000);
    record(&second, 64 << 10, 2_000);
    let url = bucket.url("some/prefix");
    let mut written = Vec::new();
    for trace in [&trace, &second] {
        let mut summaries = [text(&local), &url].map(|store| bucket.json(&["export", "--json", store, text(trace)]));
        written.push(summaries[1]["events"].clone());
        for summary in &mut summaries {
            summary.as_object_mut().expect("an object").remove("output");
        }
        assert_eq!(summaries[0], summaries[1]);
    }
    let sql = r#"SELECT path, count(*), sum(nanos) FROM "shop:answered" GROUP BY path ORDER BY path"#;
    let [here, there] = [text(&local), &url].map(|store| bucket.run("writer", &["--csv", sql, store]));
    assert!(here.stdout.len() > 40 && here.stdout == there.stdout && here.stderr == there.stderr, "{there:?}");
    let [here, there] = [text(&local), &url].map(|store| bucket.run("writer", &["--tables", store]).stdout);
    assert_eq!(String::from_utf8_lossy(&here), String::from_utf8_lossy(&there));
    let error = bucket.error("writer", &["SELECT 1", &bucket.url("other")]);
    assert!(error.contains("is not a store"), "{error}");
    let error = bucket.error("writer", &["export", &url, text(&trace)]);
    assert!(error.contains("already") && error.contains("name another store"), "{error}");
    let found = |name| read(&bucket.copied(place.path(), name).join("some/prefix"), &[]);
    let Some(expected) = read(&local, &[]) else { return };
    assert_eq!(found("written").as_ref(), Some(&expected));
    // Compact both; for DuckDB the contents must stay the same.
    let done = bucket.json(&["compact", "--json", &url]);
    let [before, after] = ["files_before", "files_after"].map(|name| done[name].as_u64());
    assert!(before >= Some(4) && before > after, "{done}");
    assert_eq!(found("compacted").as_ref(), Some(&expected));
    assert_eq!(bucket.json(&["compact", "--json", &url])["files_before"], 0);
    let kept = bucket.json(&["retain", "--days", "100000", "--json", &url]);
    assert_eq!(kept["removed_files"], 0);
}

#[test]
fn a_large_file_is_uploaded_in_parts() {
    let Some(bucket) = Bucket::new("large") else { return };
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (trace, local) = (place.path().join("trace"), place.path().join("local"));
    let mut random = Random(seed::seed());
    // Incompressible bytes.
    let kinds = vec![EventKind { name: "large:one".to_owned(), fields: vec![("f".to_owned(), Field::Bytes(400))] }];
    // All events on one day.
    let made = TraceSpec {
        kinds,
        begin_ns: 1_600_000_000_000_000_000,
        step_ns: 1_000,
        streams: 1,
        packets: 100,
        packet_events: 800,
        loses: false,
        contexts: false,
        ..TraceSpec::random(&mut random)
    };
    made.write(&trace, &mut random);
    let url = bucket.url("store");
    bucket.json(&["export", "--json", text(&local), text(&trace)]);
    bucket.json(&["export", "--json", &url, text(&trace)]);
    let [one, other] = [local, bucket.copied(place.path(), "copy").join("store")].map(|store| contents(&store));
    assert!(one.iter().any(|file| file.len() > 11 << 20), "three parts");
    assert!(one == other, "the same files");
}

#[test]
fn days_are_removed_and_their_traces_can_be_written_again() {
    let Some(bucket) = Bucket::new("retained") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let (trace, events) = large_trace(place.path(), &mut Random(seed::seed()), 2);
    let url = bucket.url("");
    assert_eq!(bucket.json(&["export", "--json", &url, text(&trace)])["events"], events);
    assert!(visible(&bucket.copied(place.path(), "written")).0 > 0);
    let removed = bucket.json(&["retain", "--days", "1", "--json", &url]);
    assert_eq!(removed["removed_days"], serde_json::json!(["2020-09-13"]));
    assert!(removed["removed_files"].as_u64() > Some(2) && removed["bytes"] == 0, "{removed}");
    assert_eq!(visible(&bucket.copied(place.path(), "removed")), (0, false));
    assert_eq!(bucket.json(&["export", "--json", &url, text(&trace)])["events"], events);
}

#[test]
fn a_killed_writer_leaves_all_or_nothing() {
    let Some(bucket) = Bucket::new("killed") else { return };
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (trace, events) = large_trace(place.path(), &mut random, 8);
    let began = Instant::now();
    bucket.json(&["export", "--json", &bucket.url("whole"), text(&trace)]);
    let took = began.elapsed().as_micros() as u64;
    let parts = visible(&bucket.copied(place.path(), "whole").join("whole")).0;
    let kills = std::env::var("TRACEPOINT_KILLS").map_or(8, |kills| kills.parse().expect("a number"));
    let mut before = 0;
    for kill in 0..kills {
        let prefix = format!("kill{kill}");
        let url = bucket.url(&prefix);
        let mut writer = bucket.program("writer", &["export", &url, text(&trace)]);
        let mut writer: Child = writer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program runs");
        thread::sleep(Duration::from_micros(random.below(took)));
        writer.kill().expect("it was started");
        writer.wait().expect("it was started");
        // The next program that opens the store completes committed changes. It fails if the store does not exist yet.
        bucket.run("writer", &["compact", "--target", "1B", &url]);
        let again = bucket.run("writer", &["export", "--json", &url, text(&trace)]);
        if again.status.success() {
            before += 1;
            let summary: Value = serde_json::from_slice(&again.stdout).expect("JSON");
            assert_eq!(summary["events"], events);
        } else {
            let error = String::from_utf8_lossy(&again.stderr);
            assert!(error.contains("already"), "{error}");
        }
        let copy = bucket.copied(place.path(), &prefix).join(&prefix);
        assert_eq!(visible(&copy), (parts, true), "the whole trace, once");
    }
    println!("{before} of {kills} were killed before they had committed");
    assert!(before > 0, "no writer was killed in the middle");
}

#[test]
fn a_trace_that_several_write_at_once_is_stored_once() {
    let Some(bucket) = Bucket::new("several") else { return };
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (trace, _) = large_trace(place.path(), &mut Random(seed::seed()), 2);
    let url = bucket.url("store");
    let start = || {
        bucket.program("writer", &["export", &url, text(&trace)]).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let writers = [(); 3].map(|()| start().expect("the program runs"));
    let results = writers.map(|mut writer| writer.wait().expect("it was started").code());
    let written = results.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(written, 1, "{results:?}");
    bucket.json(&["export", "--json", &bucket.url("whole"), text(&trace)]);
    let copy = bucket.copied(place.path(), "copy");
    assert_eq!(visible(&copy.join("store")), visible(&copy.join("whole")));
}

#[test]
fn errors_of_the_server_are_overcome() {
    let Some(bucket) = Bucket::new("unlucky") else { return };
    let place = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let (trace, events) = large_trace(place.path(), &mut Random(seed::seed()), 1);
    let url = bucket.url("store");
    let output = bucket.run("unlucky", &["export", "--json", &url, text(&trace)]);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["events"], events, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(bucket.run("unlucky", &["compact", &url]).status.success());
}

#[test]
fn an_error_names_its_mend() {
    let Some(bucket) = Bucket::new("errors") else { return };
    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    record(&trace, 1 << 20, 100);
    let url = bucket.url("store");
    let export = ["export", &url, text(&trace)];
    let missing = bucket.error("writer", &["export", "s3://missing/store", text(&trace)]);
    assert!(missing.contains("s3://missing/store") && missing.contains("no such bucket: create it"), "{missing}");
    assert!(bucket.error("writer", &["compact", "s3://missing/store"]).contains("no such bucket"));
    let denied = bucket.error("denied", &export);
    assert!(denied.contains("access denied") && denied.contains("AWS_ACCESS_KEY_ID"), "{denied}");
    let denied = bucket.error("reader", &export);
    assert!(denied.contains("access denied") && denied.contains("put and delete"), "{denied}");
    let none = bucket.error("writer", &["compact", &url]);
    assert!(none.contains("is not a store"), "{none}");
    for (url, text) in [("gs://bucket/store", "not supported"), ("s3:///store", "names no bucket")] {
        let error = bucket.error("writer", &["compact", url]);
        assert!(error.contains(text) && error.contains("s3://BUCKET/PREFIX"), "{error}");
    }
    // Nor does the instance metadata service have credentials.
    let mut anonymous = bucket.program("writer", &["compact", &url]);
    anonymous.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    let output = anonymous.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1").output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no credentials: set AWS_ACCESS_KEY_ID"), "{error}");
    let mut unreachable = bucket.program("writer", &["compact", &url]);
    let output = unreachable.env("AWS_ENDPOINT", "http://127.0.0.1:1").output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cannot be reached") && error.contains("AWS_ENDPOINT"), "{error}");
}
