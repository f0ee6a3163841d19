//! Invalid input is refused before any event is enabled, with advice.

use crate::common::{Outcome, place, view};
use tracepoint_run_dir::Notice;
use tracepoint_session::sinks::{CtfSink, TextSink};
use tracepoint_session::{Channel, Session, SessionBuilder, SessionError};
use tracepoint_session_spec::Rule;

tracepoint::define_trace! {
    provider = "net";
    #[level(Info)]
    pub receive(bytes: u64) { bytes: u64 = bytes }
    #[level(Debug)]
    pub transmit(bytes: u64) { bytes: u64 = bytes }
}

fn session(name: &str) -> SessionBuilder {
    Session::builder(name).sink(TextSink::new(Vec::new()))
}

fn refused(builder: SessionBuilder) -> String {
    match builder.start() {
        Ok(session) => panic!("{} was started", session.name()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn session_names_that_are_not_file_names_are_refused() {
    own_process!();
    let long = "x".repeat(256);
    for (name, part) in [
        ("", "empty"),
        ("a/b", "`/`"),
        ("a\0b", "NUL"),
        (".", "dot"),
        ("..", "dot"),
        (".hidden", "dot"),
        ("a\u{1b}[2Jb", "control character"),
        (&long, "255"),
    ] {
        let message = refused(session(name));
        assert!(message.contains(part) && message.contains("not a valid session name"), "{message}");
    }
    assert!(session(&"x".repeat(255)).start().is_ok());
    assert!(session("Größe 1").start().is_ok());
}

#[test]
fn rules_that_match_no_event_suggest_the_nearest_names() {
    own_process!();
    for (builder, parts) in [
        (session("s").events("net:recieve"), ["`net:recieve`", "did you mean net:receive"]),
        (session("s").events("net:*").events("disk:*"), ["`disk:*`", "no event matches"]),
        (session("s").events("net"), ["`net`", "`net:*`"]),
        (session("s").events("net:[a"), ["`net:[a`", "byte 5"]),
        (session("s").events("*").events("!*"), ["`!*`", "leave no event"]),
        (session("s").events(Rule::new("*").level("loud")), ["`loud`", "`<=info`"]),
        (session("s").events(Rule::new("*").level("<=loud")), ["`<=loud`", "levels are"]),
        (session("s").events(Rule::new("net:*").level("<=err")), ["`<=err`", "most important of them is Info"]),
        (session("s").channel(Channel::discard(64)), ["channel", "512 bytes"]),
        (session("s").channel(Channel::discard(1 << 20).name("a/b")), ["channel", "`a/b`"]),
        (Session::builder("s"), ["without a sink", "CtfSink::create"]),
    ] {
        let message = refused(builder);
        for part in parts {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
    assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()), "nothing was switched on");
}

#[test]
fn an_exclusion_that_matches_no_event_is_only_a_notice() -> Outcome {
    own_process!();
    let session = session("s").events("net:*").events("!disk:*").events("!net:t*").start()?;
    assert_eq!(session.notices(), [Notice::UselessExclusion("!disk:*".to_owned())]);
    let summary = session.stop()?;
    let names: Vec<_> = summary.events().iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["net:receive"]);
    Ok(())
}

/// As for a remotely controlled session: rules that are added later decide.
#[test]
fn a_session_without_rules_records_nothing() -> Outcome {
    own_process!();
    for session in [session("s"), session("s").events("!net:t*")] {
        let session = session.start()?;
        assert_eq!(session.notices(), [Notice::NoRule]);
        assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()));
        assert!(session.stop()?.events().is_empty());
    }
    Ok(())
}

#[test]
fn a_sink_that_cannot_begin_stops_the_start() -> Outcome {
    own_process!();
    let place = place();
    let sink = CtfSink::create(place.path())?;
    std::fs::write(place.path().join("metadata"), "mine")?;
    let error = Session::builder("s").events("net:*").sink(sink).start().err().ok_or("it was started")?;
    assert!(matches!(error, SessionError::Start(_)), "{error}");
    assert!(error.to_string().contains("metadata"), "{error}");
    Ok(())
}

#[test]
fn a_session_without_events_writes_an_empty_trace() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    Session::builder("quiet").events("net:t*").sink(CtfSink::create(&dir)?).start()?.stop()?;
    let viewed = view(&[&dir]);
    assert_eq!((viewed.lines.len(), viewed.warnings.as_str()), (0, ""));
    Ok(())
}
