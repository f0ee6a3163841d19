//! Rules that compute statistics, in a session in code.

use crate::common::{Outcome, event, memory_place, names};
use tracepoint_probes::snapshot::Results;
use tracepoint_session::{Channel, Session, SessionError};
use tracepoint_session_spec::{Limit, Rule, RuleStatistic, SessionSpec};

tracepoint::define_trace! {
    provider = "statistics";

    pub sold(article: &str, pieces: u64) { article: str = article, pieces: u64 = pieces }
    pub paid(cents: f64) { cents: f64 = cents }
}

fn counted(session: &Session, event: &str) -> Option<u64> {
    let results = session.statistics();
    let of_event = results.iter().filter(|result| result.event == event);
    let mut counts = of_event.filter_map(|result| match &result.snapshot.results {
        Results::Count(rows) => Some(rows.values().sum()),
        _ => None,
    });
    counts.next()
}

#[test]
fn rules_compute_beside_recording() -> Outcome {
    own_process!();
    let place = memory_place();
    let session = Session::builder("sales")
        .events("statistics:sold")
        .events(Rule::new("statistics:*").statistic("count"))
        .events(
            Rule::new("statistics:*").statistic(RuleStatistic::Compute("hist(pieces)".parse()?)).filter("pieces > 1"),
        )
        .channel(Channel::overwrite(64 << 10))
        .dir(place.path())
        .start()?;
    for pieces in 0..10 {
        tracepoint::trace!(sold("apple", pieces));
    }
    tracepoint::trace!(paid(0.5));
    assert_eq!((counted(&session, "statistics:sold"), counted(&session, "statistics:paid")), (Some(10), Some(1)));
    let pieces = session.statistics().into_iter().find_map(|result| match result.snapshot.results {
        Results::Histogram(rows) => rows.all,
        _ => None,
    });
    assert_eq!(pieces.map(|pieces| (pieces.count(), pieces.min())), Some((8, Some(2.0))));
    assert_eq!(names(&place.path().join("statistics")).len(), 3, "a file for each rule, and the list");

    // A rule is added, and another one removed.
    session.enable(Rule::new("statistics:sold").statistic("top(article, 2)"))?;
    tracepoint::trace!(sold("pear", 1));
    let articles = session.statistics().into_iter().find_map(|result| match result.snapshot.results {
        Results::Top { values } => Some(values[0].value.to_string()),
        _ => None,
    });
    assert_eq!(articles.as_deref(), Some("pear"));
    session.disable(Rule::new("statistics:*").statistic("count"))?;
    assert_eq!((session.statistics().len(), counted(&session, "statistics:sold")), (2, None));
    let described = session.spec();
    assert_eq!(SessionSpec::parse(described.to_toml()?.as_bytes())?, described);

    let summary = session.stop()?;
    assert_eq!((summary.events().len(), event(&summary, "statistics:sold").recorded), (1, 11));
    assert!(names(place.path()).is_empty() && tracepoint::runtime::markers().all(|marker| !marker.is_on()));
    Ok(())
}

/// Running statistics continue; new ones do not start until the list can be written.
#[test]
fn a_list_that_cannot_be_written_ends_no_statistic() -> Outcome {
    own_process!();
    let place = memory_place();
    let count = || Rule::new("statistics:sold").statistic("count");
    let session = Session::builder("sales").events(count()).dir(place.path()).start()?;
    tracepoint::trace!(sold("apple", 1));
    let directory = place.path().join("statistics");
    let list = names(&directory).into_iter().find(|name| name.contains(".json")).ok_or("no list")?;
    std::fs::remove_file(directory.join(&list))?;
    std::fs::create_dir_all(directory.join(&list).join("in the way"))?;
    let more = || Rule::new("statistics:*").statistic("rate");
    assert!(session.enable(more()).is_err());
    tracepoint::trace!(sold("apple", 1));
    assert_eq!((counted(&session, "statistics:sold"), session.statistics().len()), (Some(2), 1));
    std::fs::remove_dir_all(directory.join(&list))?;
    session.enable(more())?;
    tracepoint::trace!(sold("apple", 1));
    assert_eq!((counted(&session, "statistics:sold"), session.statistics().len()), (Some(3), 3));
    session.stop()?;
    Ok(())
}

/// A session that only computes statistics needs neither an output nor a flight recorder, and its site records nothing.
#[test]
fn a_statistic_alone_records_nothing() -> Outcome {
    own_process!();
    let session =
        Session::builder("sales").events(Rule::new("statistics:sold").statistic("count")).in_memory().start()?;
    tracepoint::trace!(sold("apple", 1));
    assert_eq!(counted(&session, "statistics:sold"), Some(1));
    // Recording needs a sink.
    assert!(matches!(session.enable("statistics:paid"), Err(SessionError::Spec(_))));
    assert_eq!(session.stop()?.events().len(), 0);
    Ok(())
}

#[test]
fn samples_are_recorded_and_the_others_suppressed() -> Outcome {
    own_process!();
    let rule = Rule::new("statistics:sold").statistic("sample(1/10)").filter("pieces < 100");
    let flight = Channel::overwrite(64 << 10);
    let session = Session::builder("sample").events(rule).channel(flight).in_memory().start()?;
    for pieces in 0..150 {
        tracepoint::trace!(sold("apple", pieces));
    }
    let summary = session.stop()?;
    let sold = event(&summary, "statistics:sold");
    assert_eq!((sold.fired, sold.recorded, sold.suppressed, sold.filtered), (150, 10, 90, 50));
    Ok(())
}

#[test]
fn rules_that_cannot_be_are_refused_with_the_mend() {
    let rule = || Rule::new("statistics:sold");
    for (rule, part) in [
        (rule().statistic("sum(pieces)"), "there are `count`, `rate`, `hist(FIELD)`"),
        (rule().statistic("hist(piece)"), "its fields: article, pieces"),
        (rule().statistic("hist(article)"), "is not a number"),
        (rule().statistic("sample(100)"), "expected for example `sample(1/100)`"),
        (rule().statistic("sample(1/0)"), "expected for example `sample(1/100)`"),
        (rule().statistic("count").limit(Limit::per_second(5)), "leave the limit out, or add `record`"),
        (rule().statistic("count").channel("channel0"), "leave the channel out, or add `record`"),
        (rule().record(), "leave `record` out"),
        (Rule::new("!statistics:sold").statistic("count"), "`!`"),
        (Rule::new("*").statistic("latency(statistics:sold, statistics:pad by id)"), "did you mean statistics:paid"),
        (Rule::new("*").statistic("latency(statistics:sold, statistics:paid by id)"), "a field `id`"),
    ] {
        let started = Session::builder("refused").events(rule.clone()).in_memory().start();
        let error = started.expect_err(&rule.to_string()).to_string();
        assert!(error.contains(part), "{rule}: {error}");
    }
}
