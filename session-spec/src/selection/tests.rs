//! Tests of matching rules with candidates.

use super::*;
use crate::spec::{ChannelSpec, Rule, SinkSpec};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn rules_choose_events_of_processes() -> Outcome {
    let mut spec = SessionSpec::new();
    let here = ProcessKey::new(7, 1);
    for (event, level, exe, process) in [
        ("a:*", None, None, None),
        ("b:*", Some("<=info"), None, None),
        ("!a:idle", None, None, None),
        ("c:*", None, Some("server"), None),
        ("d:*", None, Some("other"), None),
        ("e:*", None, None, Some(ProcessKey::new(7, 2))),
        ("nothing:*", None, None, None),
    ] {
        let rule = level.into_iter().fold(Rule::new(event), Rule::level);
        let mut rule = exe.into_iter().fold(rule, Rule::exe);
        rule.process = process;
        spec.add_rule(&rule)?;
    }
    let event = |name: &str, level| Candidate { name: name.to_owned(), level };
    let events = [
        event("a:x", Level::Debug),
        event("a:idle", Level::Debug),
        event("b:x", Level::Err),
        event("b:y", Level::Debug),
        event("c:x", Level::Debug),
        event("d:x", Level::Debug),
        event("e:x", Level::Debug),
    ];
    let selected = select(&spec, here, "/usr/bin/server", &events);
    assert_eq!(selected.recorded[0], [true, false, true, false, true, false, false]);
    let some = |count| Some(Ok(count));
    assert_eq!(selected.rules, [some(2), some(1), some(1), some(1), None, None, some(0)]);
    Ok(())
}

#[test]
fn rules_choose_for_channels() -> Outcome {
    let mut spec = SessionSpec::new();
    spec.sinks.push(SinkSpec::ctf("/tmp/out").into());
    spec.channels = ["b", "c"].map(|name| ChannelSpec::default().named(name)).to_vec();
    let rules = [("x:*", None), ("x:1", Some("b")), ("x:*", Some("c")), ("!x:3", None), ("!x:2", Some("c"))];
    for (event, channel) in rules {
        let mut rule = Rule::new(event);
        rule.channel = channel.map(str::to_owned);
        assert!(spec.add_rule(&rule)?, "{event}");
    }
    // The default channel can be named as well.
    let mut rule = Rule::new("!x:4");
    rule.channel = Some("channel0".to_owned());
    spec.add_rule(&rule)?;
    let events = ["x:1", "x:2", "x:3", "x:4"].map(|name| Candidate { name: name.to_owned(), level: Level::Info });
    let selected = select(&spec, ProcessKey::new(1, 1), "/bin/x", &events);
    assert_eq!(
        selected.recorded,
        [[true, true, false, false], [true, false, false, false], [true, false, false, true]]
    );
    let counts: Vec<_> = selected.rules.into_iter().flatten().flatten().collect();
    assert_eq!(counts, [4, 1, 4, 1, 1, 1]);
    Ok(())
}
