//! `tracectl record` of a program that uses only `tracing` and `log`: a web service over HTTP/2 with axum, hyper and h2, none of which knows
//! this library. The traced process is this test program again. This is a separate test program, because it links a whole HTTP stack.
#![forbid(unsafe_code)]

use axum::{Router, routing::get};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tracepoint_reader::{Event, Item, Trace, Value};
use tracepoint_session::Agent;
use tracing_subscriber::prelude::*;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Set in the traced process: the number of requests it makes.
const REQUESTS: &str = "TEST_REQUESTS";

/// A program with only the layer in `main`. It ends when its standard input does.
fn program(requests: usize) -> Outcome {
    tracing_subscriber::registry().with(tracepoint_tracing::layer()).init();
    tracepoint_tracing::log::init()?;
    let _agent = Agent::start()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve(requests))?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}

async fn serve(requests: usize) -> Outcome {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = Router::new().route("/hello", get(|| async { "hello" }));
    tokio::spawn(async move { axum::serve(listener, service).await });
    let stream = TokioIo::new(tokio::net::TcpStream::connect(address).await?);
    let (mut sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(connection);
    for number in 0..requests {
        let request = hyper::Request::get(format!("http://{address}/hello")).body(Empty::<Bytes>::new())?;
        let answer = sender.send_request(request).await?;
        assert_eq!(answer.into_body().collect().await?.to_bytes(), "hello");
        // An event of the application itself.
        tracing::info!(
            number,
            took = 1.5,
            route = "/hello",
            http.status = 200,
            unset = tracing::field::Empty,
            "answered"
        );
        log::warn!(target: "app::old", "request {number}");
    }
    let span = tracing::info_span!("shutdown", reason = tracing::field::Empty);
    span.in_scope(|| tracing::warn!("inside"));
    span.record("reason", "done");
    Ok(())
}

/// Records that program with `tracectl`.
fn record(rules: &[&str], requests: usize, directory: &Path, test: &str) -> Outcome<Output> {
    let run_dir = tempfile::tempdir_in("/dev/shm")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.arg("record").args(rules.iter().flat_map(|rule| ["-e", rule])).arg("-o").arg(directory).arg("--");
    command.arg(std::env::current_exe()?).args(["--exact", test, "--nocapture"]);
    command.env("TRACEPOINT_RUN_DIR", run_dir.path()).env(REQUESTS, requests.to_string());
    Ok(command.output()?)
}

fn events(directory: &Path) -> Outcome<Vec<Event>> {
    let items = Trace::open(directory)?.items();
    Ok(items.filter_map(|item| if let Item::Event(event) = item { Some(event) } else { None }).collect())
}

fn field<'e>(event: &'e Event, name: &str) -> Option<&'e Value> {
    event.fields.as_ref()?.get(name)?.present()
}

/// The agent begins to record before the layer exists; then callsites are reached one after the other.
#[test]
fn an_agent_may_start_before_the_layer() -> Outcome {
    if std::env::var(REQUESTS).is_ok() {
        let _agent = Agent::start()?;
        tracing_subscriber::registry().with(tracepoint_tracing::layer()).init();
        tracing::info!("first");
        tracing::info!("second");
        tracing::info!("third");
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let directory = place.path().join("trace");
    // The tracepoint of `log` exists from the beginning, so that there is something to record immediately.
    let output = record(&["tracing:tracing:*", "log:record"], 0, &directory, "an_agent_may_start_before_the_layer")?;
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}{}", String::from_utf8_lossy(&output.stdout));
    let messages: Vec<_> = events(&directory)?.iter().filter_map(|event| field(event, "message").cloned()).collect();
    let texts: Vec<_> = messages.iter().filter_map(Value::as_bytes).map(String::from_utf8_lossy).collect();
    assert_eq!(texts, ["first", "second", "third"], "{talk}");
    Ok(())
}

#[test]
fn callsites_that_were_reached_are_listed() -> Outcome {
    if let Ok(requests) = std::env::var(REQUESTS) {
        return program(requests.parse()?);
    }
    let run_dir = tempfile::tempdir_in("/dev/shm")?;
    let mut program = Command::new(std::env::current_exe()?);
    program.args(["--exact", "callsites_that_were_reached_are_listed"]).stdin(Stdio::piped());
    let mut program = program.env("TRACEPOINT_RUN_DIR", run_dir.path()).env(REQUESTS, "1").spawn()?;
    let deadline = Instant::now() + Duration::from_secs(60);
    let listed = loop {
        let output = Command::new(env!("CARGO_BIN_EXE_tracectl"))
            .arg("list")
            .env("TRACEPOINT_RUN_DIR", run_dir.path())
            .output()?;
        let listed = String::from_utf8(output.stdout)?;
        // The last one reached.
        if listed.contains("tracing:tracing::shutdown_record") || Instant::now() > deadline {
            break listed;
        }
    };
    drop(program.stdin.take());
    assert!(program.wait()?.success());
    for shown in
        ["tracing:h2::", "message: any", "tracing:tracing::shutdown_begin", "span_id: u64, parent_id: u64, reason: any"]
    {
        assert!(listed.contains(shown), "{shown} is not in {listed}");
    }
    Ok(())
}

#[test]
fn libraries_that_know_only_tracing_are_recorded() -> Outcome {
    if let Ok(requests) = std::env::var(REQUESTS) {
        return program(requests.parse()?);
    }
    let place = tempfile::tempdir()?;
    let directory = place.path().join("trace");
    let rules = ["tracing:h2*", "tracing:tracing*", "log:*"];
    let output = record(&rules, 20, &directory, "libraries_that_know_only_tracing_are_recorded")?;
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}{}", String::from_utf8_lossy(&output.stdout));
    let events = events(&directory)?;
    let names: BTreeSet<_> = events.iter().map(Event::name).collect();

    // The events and spans of the h2 library, which uses only `tracing`.
    assert!(names.iter().filter(|name| name.starts_with("tracing:h2::")).count() > 10, "{names:?}\n{talk}");
    assert!(names.iter().any(|name| name.ends_with("_begin")) && names.iter().any(|name| name.ends_with("_end")));
    let inside = events.iter().filter(|event| field(event, "span_id").and_then(Value::as_u64) > Some(0)).count();
    assert!(inside > 0, "events inside spans name them");

    // The events of the application, including the first event of the callsite, with the types of their fields.
    let answered: Vec<_> = events.iter().filter(|event| field(event, "number").is_some()).collect();
    assert_eq!(answered.len(), 20, "{names:?}\n{talk}");
    for (number, event) in (0..).zip(&answered) {
        assert_eq!(field(event, "number").and_then(Value::as_u64), Some(number));
        assert!(matches!(field(event, "took"), Some(Value::F64(took)) if took.to_bits() == 1.5_f64.to_bits()));
        assert_eq!(field(event, "route").and_then(Value::as_bytes), Some(&b"/hello"[..]));
        assert_eq!(field(event, "http_status").and_then(Value::as_i64), Some(200));
        assert_eq!(field(event, "message").and_then(Value::as_bytes), Some(&b"answered"[..]));
        assert!(field(event, "unset").is_none());
    }
    let logged: Vec<_> = events.iter().filter(|event| event.name() == "log:record").collect();
    let by_app = logged.iter().filter(|event| field(event, "target").and_then(Value::as_bytes) == Some(b"app::old"));
    assert_eq!(by_app.count(), 20);

    // A span of the application: begin, an event inside, a value recorded later, end.
    let of_span = |ending: &str| {
        let name = format!("tracing:tracing::shutdown{ending}");
        let found = events.iter().find(|event| event.name() == name);
        found.unwrap_or_else(|| panic!("{name} is not in {names:?}"))
    };
    let id = field(of_span("_begin"), "span_id").and_then(Value::as_u64);
    assert!(id > Some(0));
    assert_eq!(field(of_span("_record"), "reason").and_then(Value::as_bytes), Some(&b"done"[..]));
    assert_eq!(field(of_span("_end"), "span_id").and_then(Value::as_u64), id);
    let (begin, end) = (of_span("_begin"), of_span("_end"));
    let between = u64::try_from(end.time_ns - begin.time_ns)?;
    let duration = field(end, "duration_ns").and_then(Value::as_u64).ok_or("a duration")?;
    assert!(duration > 0 && duration == between, "{duration} of {between}");
    let inside = events.iter().find(|event| field(event, "message").and_then(Value::as_bytes) == Some(b"inside"));
    assert_eq!(field(inside.ok_or("an event inside the span")?, "span_id").and_then(Value::as_u64), id);

    // babeltrace2 reads it without a warning.
    let viewed = Command::new("babeltrace2").arg(&directory).output()?;
    assert_eq!(String::from_utf8_lossy(&viewed.stderr), "");
    assert_eq!(String::from_utf8_lossy(&viewed.stdout).lines().count(), events.len());
    Ok(())
}
