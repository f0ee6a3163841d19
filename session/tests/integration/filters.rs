//! Sessions whose rules have filters: records, counts, and notices.

use crate::common::{Outcome, assert_balances, event, place, view};
use tracepoint_run_dir::Notice;
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Session, SessionError};
use tracepoint_session_spec::{Rule, RuleProblem};

mod tasks {
    tracepoint::define_trace! {
        provider = "tasks";
        pub switched(pid: i32, comm: &str, size: u64) { pid: i32 = pid, comm: str = comm, size: u64 = size }
        pub ended(pid: i32, code: u8) { pid: i32 = pid, code: u8 = code }
        pub idle(code: &str) { code: str = code }
    }
}

fn fire() {
    for code in 0..10 {
        let pid = i32::from(code);
        tasks::trace_switched(pid, if pid % 2 == 0 { "postgres: writer" } else { "sh" }, 1 << pid);
        tasks::trace_ended(pid, code);
        tasks::trace_idle("none");
    }
}

#[test]
fn only_accepted_events_are_recorded() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let session = Session::builder("filter")
        .events(Rule::new("tasks:switched").filter("pid > 5 && comm == \"postgres*\" || !(size & 0xff)"))
        .sink(CtfSink::create(&dir)?)
        .start()?;
    fire();
    let summary = session.stop()?;
    let account = event(&summary, "tasks:switched");
    assert_eq!((account.fired, account.recorded, account.filtered), (10, 3, 7), "6, 8 and 9");
    assert_balances(&dir);
    let viewed = view(&[&dir]);
    assert_eq!((viewed.lines.len(), viewed.count("pid = 9"), viewed.warnings.as_str()), (3, 1, ""));
    Ok(())
}

#[test]
fn an_event_is_recorded_if_one_rule_accepts_it() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let session = Session::builder("rules")
        .events(Rule::new("tasks:*ed").filter("pid >= 8"))
        .events(Rule::new("*:switched").filter("pid == 0"))
        .sink(CtfSink::create(&dir)?)
        .start()?;
    fire();
    let summary = session.stop()?;
    assert_eq!(session_counts(&summary), [("tasks:ended".to_owned(), 2, 8), ("tasks:switched".to_owned(), 3, 7)]);
    assert_balances(&dir);
    Ok(())
}

fn session_counts(summary: &tracepoint_session::Summary) -> Vec<(String, u64, u64)> {
    let counts =
        |event: &tracepoint_session::sinks::account::EventAccount| (event.name.clone(), event.recorded, event.filtered);
    summary.events().iter().map(counts).collect()
}

#[test]
fn events_that_a_filter_does_not_fit_are_reported() -> Outcome {
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    // `idle` has no field `pid`, and its field `code` is a text.
    let session = Session::builder("misfits")
        .events(Rule::new("tasks:*").filter("pid > 0 && pid < 3"))
        .sink(CtfSink::create(&dir)?)
        .start()?;
    let reason = "no field is called `pid`".to_owned();
    assert_eq!(session.notices(), [Notice::FilterDoesNotFit { event: "tasks:idle".to_owned(), reason }]);
    fire();
    let summary = session.stop()?;
    assert_eq!(session_counts(&summary), [("tasks:ended".to_owned(), 2, 8), ("tasks:switched".to_owned(), 2, 8)]);

    let rule = Rule::new("tasks:*").filter("code >= 9");
    let wrong_type = Session::builder("types").events(rule).sink(CtfSink::create(dir.join("b"))?);
    let session = wrong_type.start()?;
    let notices: Vec<_> = session.notices().iter().map(ToString::to_string).collect();
    let expected = "tasks:idle is left out, because the filter does not fit it: `code` is str and `9` is an integer: they cannot \
                    be compared";
    assert!(notices.len() == 2 && notices.iter().any(|notice| notice.starts_with(&expected[..60])), "{notices:?}");
    fire();
    assert_eq!(session_counts(&session.stop()?), [("tasks:ended".to_owned(), 1, 9)]);
    Ok(())
}

#[test]
fn invalid_filters_are_errors_with_a_place() {
    own_process!();
    let place = place();
    let start = |rule: &str, filter: &str| {
        let sink = CtfSink::create(place.path().join("none")).expect("a sink");
        let rule = Rule::new(rule).filter(filter);
        Session::builder("error").events(rule).sink(sink).start().expect_err("no session")
    };
    let error = start("tasks:*", "pidd == 5");
    assert!(matches!(&error, SessionError::Rule(error) if matches!(error.problem, RuleProblem::Filter(_))));
    let expected =
        "rule `tasks:*`: the filter cannot be used: no field is called `pidd`; did you mean pid?\n  pidd == 5\n  ^^^^";
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        start("tasks:ended", "pid ==").to_string(),
        "rule `tasks:ended`: the filter cannot be used: the filter ends too soon: a field, a number or a text is missing\n  pid ==\n        ^"
    );
    let error = start("!tasks:idle", "pid == 5");
    assert!(matches!(error, SessionError::Rule(error) if error.problem == RuleProblem::ConditionOnExclusion));
    assert!(tracepoint::runtime::markers().all(|marker| !marker.is_on()));
}
