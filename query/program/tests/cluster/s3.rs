//! Executors read a store in S3, served by moto, if their environment has credentials for it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use tracepoint_query_tests::processes::{Cluster, errors, rows};
use tracepoint_query_tests::stores;

use crate::PROGRAM;
use crate::skip::skip;

/// The program with this access key in its environment.
fn program(port: u16, key: &'static str) -> impl Fn() -> Command {
    move || {
        let mut command = Command::new(PROGRAM);
        command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}")).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_REGION", "us-east-1").env("AWS_ACCESS_KEY_ID", key).env("AWS_SECRET_ACCESS_KEY", "secret");
        command.env_remove("AWS_SESSION_TOKEN");
        command
    }
}

#[test]
fn executors_read_a_store_in_s3() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join("../../target/tools/moto");
    if !packages.join("moto").is_dir() {
        return skip("moto from PyPI is not installed", "Run scripts/setup.sh");
    }
    let mut command = Command::new("python3");
    let command = command.arg(root.join("tests/s3/serve.py")).env("PYTHONPATH", packages);
    // The server ends with its standard input.
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
    let (mut input, output) = server.stdin.take().zip(server.stdout.take()).expect("pipes");
    let mut lines = BufReader::new(output).lines().map(|line| line.expect("text"));
    let port = lines.next().expect("a line").parse().expect("a port");
    writeln!(input, "bucket cluster").expect("the server lives");
    assert_eq!(lines.next().as_deref(), Some("done"));

    let place = tempfile::tempdir().expect("a directory");
    let trace = place.path().join("trace");
    stores::record(&trace, "shop", 16 << 20, 3000);
    let url = "s3://cluster/a b/traces";
    let written = program(port, "writer")().args(["export", url]).arg(&trace).output().expect("the program runs");
    assert!(written.status.success(), "{}", errors(&written));

    let sql =
        "SELECT path, count(*) AS requests, sum(nanos) AS nanos FROM \"shop:answered\" GROUP BY path ORDER BY path";
    let embedded = program(port, "reader")().args(["--json", sql, url]).output().expect("the program runs");
    let cluster = Cluster::start(program(port, "reader"), place.path(), 2, 1);
    let output = cluster.query(sql, Path::new(url)).output().expect("the program runs");
    assert_eq!(rows(&output).len(), 3);
    assert_eq!(rows(&output), rows(&embedded));
    drop(input);
    server.wait().expect("it ends");
}
