//! Filters and limits of the rules of remotely controlled sessions.

use crate::common::{Outcome, assert_balances, view};
use crate::traced::{PATIENCE, Place, is_traced, spec, traces};
use std::time::Duration;
use tracepoint_controller::NamedSession;
use tracepoint_run_dir::{Ack, AckState, RuleAck};
use tracepoint_session_spec::{Rule, SinkSpec};

fn rule(event: &str, filter: Option<&str>, limit: Option<&str>) -> Rule {
    let rule = filter.into_iter().fold(Rule::new(event), Rule::filter);
    limit.into_iter().fold(rule, Rule::limit)
}

/// A session with these rules, which writes CTF.
fn record<'p>(place: &'p Place, name: &str, rules: &[Rule]) -> NamedSession<'p> {
    let mut spec = spec(&[], &[SinkSpec::ctf(place.out(name)).into()]);
    for rule in rules {
        spec.add_rule(rule).expect("a rule");
    }
    place.controller.create(name, &spec).expect("a session")
}

fn until(place: &Place, session: &NamedSession<'_>, is_enough: impl Fn(&Ack) -> bool) -> Ack {
    loop {
        let ack = place.acks(session).remove(0);
        if is_enough(&ack) {
            return ack;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The numbers of the ticks in a trace.
fn ticks(place: &Place, name: &str) -> Vec<u64> {
    let traces = traces(&place.out(name));
    assert_eq!(traces.len(), 1, "{traces:?}");
    assert_balances(&traces[0]);
    let viewed = view(&[&traces[0]]);
    assert_eq!(viewed.warnings, "");
    let number = |line: &String| {
        let text = line.split_once(" traced:tick:")?.1.split_once("n = ")?.1;
        text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    viewed.lines.iter().filter_map(number).collect()
}

#[test]
fn filters_are_applied_and_change_without_a_gap() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("filters::filters_are_applied_and_change_without_a_gap");
    let tick = |filter| rule("traced:tick", filter, None);
    let filters = [Some("n & 1 == 0"), Some("n & 1"), Some("n < 0"), None];
    let session = record(&place, "sieve", &[tick(filters[0])]);
    until(&place, &session, |ack| ack.counters.recorded >= 20);
    for pair in filters.windows(2) {
        session.change("filter", |spec| {
            assert_eq!(spec.remove_rule(&tick(pair[0])), 1);
            spec.add_rule(&tick(pair[1])).expect("a rule");
            Ok(())
        })?;
        let before = place.acks(&session).remove(0);
        assert_eq!((before.state, &before.rules[..]), (AckState::Recording, &[Some(RuleAck::Events(1))][..]));
        until(&place, &session, |ack| ack.counters.fired >= before.counters.fired + 40);
    }
    let ack = session.destroy(PATIENCE, false)?.acks.remove(0);
    let numbers = ticks(&place, "sieve");
    assert_eq!(numbers.len() as u64, ack.counters.recorded);
    assert_eq!(ack.counters.fired, ack.counters.recorded + ack.counters.filtered);
    // The difference is two while a filter is set, one at the change from even to odd numbers, and there is a gap while none is recorded.
    assert!(numbers[..20].iter().all(|n| n % 2 == 0), "{numbers:?}");
    assert!(numbers.iter().filter(|n| *n % 2 == 1).count() > 20);
    assert!(numbers.windows(2).any(|pair| pair[1] - pair[0] > 20), "{numbers:?}");
    assert!(numbers[numbers.len() - 20..].windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    // Each event fired once: before the first recorded one at most one odd number, and no other event was missed by a change.
    let span = numbers[numbers.len() - 1] - numbers[0] + 1;
    assert!((span..=span + 1).contains(&ack.counters.fired), "{span} events, {ack:?}");
    Ok(())
}

#[test]
fn a_filter_with_an_unknown_field_fails_its_rule_only() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("filters::a_filter_with_an_unknown_field_fails_its_rule_only");
    let rules =
        [rule("traced:tick", Some("m > 3"), None), rule("traced:t?ck", Some("half >= 0"), None), Rule::new("bad:*")];
    let session = record(&place, "misfit", &rules);
    let ack = place.until_recorded(&session, 5).remove(0);
    let [Some(RuleAck::Unsupported(reason)), Some(RuleAck::Events(1)), Some(RuleAck::Events(0))] = &ack.rules[..]
    else {
        return Err(format!("{ack:?}").into());
    };
    assert!(reason.contains("no field is called `m`") && reason.ends_with("\n  m > 3\n  ^"), "{reason}");
    assert_eq!((ack.state, ack.events), (AckState::Recording, 1));
    assert_eq!(place.on(), ["traced:tick"]);
    assert!(ack.notices.len() == 1 && ack.notices[0].to_string().starts_with("traced:tock is left out"), "{ack:?}");
    // A rule that accepts all events also records the other rule's event.
    session.change("open", |spec| {
        spec.add_rule(&Rule::new("traced:tock")).expect("a rule");
        Ok(())
    })?;
    let ack = place.acks(&session).remove(0);
    assert_eq!((ack.events, ack.notices.len()), (2, 0));

    let mut spec = session.spec()?;
    for (rule, part) in [
        (rule("a:*", Some("n >"), None), "  n >\n     ^"),
        (rule("a:*", None, Some("many")), "the limit `many` cannot be used"),
        (rule("!a:*", None, Some("1/s")), "a rule that excludes events"),
    ] {
        let error = spec.add_rule(&rule).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
    Ok(())
}

#[test]
fn limits_keep_their_state_when_other_rules_change() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _child = place.start("filters::limits_keep_their_state_when_other_rules_change");
    let session = record(&place, "brake", &[rule("traced:tick", Some("half >= 0"), Some("7/h"))]);
    let before = until(&place, &session, |ack| ack.counters.suppressed >= 20);
    assert_eq!(before.counters.recorded, 7);
    session.change("more", |spec| {
        spec.add_rule(&Rule::new("traced:tock")).expect("a rule");
        Ok(())
    })?;
    until(&place, &session, |ack| {
        ack.counters.recorded >= 20 && ack.counters.suppressed >= before.counters.suppressed + 20
    });
    let counters = session.destroy(PATIENCE, false)?.acks.remove(0).counters;
    assert_eq!(counters.fired, counters.recorded + counters.suppressed);
    assert_eq!(ticks(&place, "brake").len(), 7);
    Ok(())
}
