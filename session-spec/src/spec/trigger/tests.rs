//! Triggers in `session.toml`.

use super::super::SessionSpec;
use super::{TriggerAction, TriggerCondition, TriggerSpec};
use crate::spec::{DrainedBy, Rule};
use std::time::Duration;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn triggers_are_written_and_read() -> Outcome {
    let mut spec = SessionSpec::new();
    spec.channel.policy = "overwrite".to_owned();
    let snapshot = || TriggerAction::Snapshot("/var/tmp/x".into());
    assert_eq!(spec.trigger(TriggerCondition::CoreDump, snapshot())?, "t1");
    assert_eq!(spec.trigger(TriggerCondition::CoreDump, snapshot())?, "t1", "it exists already");
    let second = TriggerSpec::new(TriggerCondition::CoreDump, snapshot())
        .then(TriggerAction::Stop)
        .every(3)
        .limit("5/h")
        .keep(2)
        .max_size(7);
    assert_eq!(spec.add_trigger(&second)?, "t2");
    assert_eq!(spec.add_trigger(&second.clone().named("mine"))?, "mine");
    assert!(spec.add_trigger(&second.named("mine")).is_err(), "the id is taken");
    let text = spec.to_toml()?;
    assert_eq!(SessionSpec::parse_strictly(text.as_bytes())?, spec, "{text}");
    assert!(spec.remove_trigger("t1") && !spec.remove_trigger("t1"));
    assert_eq!(spec.trigger(TriggerCondition::CoreDump, TriggerAction::Stop)?, "t1");
    Ok(())
}

/// A trigger of a newer version is kept unchanged, and the others are used.
#[test]
fn an_unknown_trigger_is_kept() -> Outcome {
    let mut spec = SessionSpec::new();
    spec.channel.policy = "overwrite".to_owned();
    spec.trigger(TriggerCondition::CoreDump, TriggerAction::Stop)?;
    let newer = "\n[[trigger]]\nid = \"new\"\nwhen = \"OnFullMoon\"\nactions = [\"howl\"]\n";
    let read = SessionSpec::parse((spec.to_toml()? + newer).as_bytes())?;
    let [Ok(known), Err(error)] = &read.triggers().collect::<Vec<_>>()[..] else { panic!("{read:?}") };
    assert_eq!((known.id.as_str(), &known.when), ("t1", &TriggerCondition::CoreDump));
    assert!(error.to_string().contains("trigger `new` is not supported"), "{error}");
    let written = read.to_toml()?;
    assert!(written.contains("OnFullMoon") && SessionSpec::parse(written.as_bytes())? == read, "{written}");
    assert!(SessionSpec::parse_strictly(written.as_bytes()).is_err());
    let mut without = read;
    assert!(without.remove_trigger("new"));
    assert_eq!(without, spec);
    Ok(())
}

/// All conditions, actions and windows have a form in files, and conditions one in texts.
#[test]
fn all_conditions_and_actions_are_written_and_read() -> Outcome {
    let rule = Rule::new("shop:*").filter("status >= 500").level("<=info").exe("shopd");
    let conditions = [
        (TriggerCondition::CoreDump, "OnAnyCoreDump"),
        (TriggerCondition::Event(Rule::new("shop:*")), "event shop:*"),
        (TriggerCondition::Event(rule), ""),
        (TriggerCondition::RingFull(80), "ring-full 80%"),
        (TriggerCondition::Statistic("p99 of hist(n) > 5ms for 1s".parse()?), "statistic p99 of hist(n) > 5ms for 1s"),
        (TriggerCondition::Lost, "lost"),
        (TriggerCondition::Size(512 << 20), "size 536870912"),
        (TriggerCondition::Rotated, "rotated"),
        (TriggerCondition::Panic, "panic"),
        (TriggerCondition::Signal("USR2".into()), "signal SIGUSR2"),
        (TriggerCondition::Signal("RTMIN+3".into()), "signal RTMIN+3"),
        (TriggerCondition::Exit, "exit"),
        (TriggerCondition::Killed, "killed"),
    ];
    let mut spec = SessionSpec::new();
    spec.drain = DrainedBy::Recorder;
    for (when, text) in conditions {
        if !text.is_empty() {
            assert_eq!(text.parse(), Ok(when.clone()), "{text}");
        }
        assert!(when.to_string().starts_with(when.kind()), "{when}");
        spec.add_trigger(
            &TriggerSpec::new(when, TriggerAction::Snapshot("/a".into())).before(Duration::from_millis(1500)),
        )?;
    }
    let run = TriggerAction::Run(["/usr/bin/page", "--urgent", "a b"].map(str::to_owned).to_vec());
    let all = TriggerSpec::new(TriggerCondition::Panic, TriggerAction::Start)
        .then(TriggerAction::Stop)
        .then(TriggerAction::Rotate)
        .then(TriggerAction::Notify)
        .then(run);
    spec.add_trigger(&all.then(TriggerAction::Snapshot("/a".into())).after(Duration::from_secs(5)))?;
    let text = spec.to_toml()?;
    assert_eq!(SessionSpec::parse_strictly(text.as_bytes())?, spec, "{text}");
    for part in
        ["before = \"1s 500ms\"", "after = \"5s\"", "ring-full = 80", "filter = \"status >= 500\"", "signal = \"USR2\""]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    Ok(())
}

#[test]
fn invalid_texts_of_conditions_are_refused() {
    for (text, part) in [
        ("OnFullMoon", "there are"),
        ("panic now", "there are"),
        ("event", "it is empty"),
        ("event !a:*", "without `!`"),
        ("ring-full", "ring-full 80%"),
        ("ring-full 101%", "1 % to 100 %"),
        ("size 0", "more than 0"),
        ("size much", "size 1000000"),
        ("signal KILL", "USR1"),
        ("signal RTMIN+99", "USR1"),
    ] {
        let error = text.parse::<TriggerCondition>().expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

/// Conditions that cannot occur, and what only a controller can do, are refused when the trigger is set.
#[test]
fn triggers_that_cannot_act_are_refused() -> Outcome {
    let mut flight = SessionSpec::new();
    flight.channel.policy = "overwrite".to_owned();
    let error = flight
        .trigger(TriggerCondition::RingFull(50), TriggerAction::Notify)
        .expect_err("its rings are always full")
        .to_string();
    assert!(error.contains("always full"), "{error}");
    for (when, action) in [
        (TriggerCondition::Panic, TriggerAction::Rotate),
        (TriggerCondition::Panic, TriggerAction::Start),
        (TriggerCondition::Size(1), TriggerAction::Notify),
    ] {
        let mut spec = SessionSpec::new();
        spec.trigger(when, action)?;
        let error = spec.check_triggers_in_code().expect_err("it is in code").to_string();
        assert!(error.contains("a session in code"), "{error}");
    }
    Ok(())
}

#[test]
fn invalid_triggers_are_refused() {
    let snapshot = |path: &str| TriggerSpec::new(TriggerCondition::CoreDump, TriggerAction::Snapshot(path.into()));
    let on = |when: TriggerCondition| TriggerSpec::new(when, TriggerAction::Notify);
    let run = |command: &[&str]| {
        TriggerSpec::new(
            TriggerCondition::Panic,
            TriggerAction::Run(command.iter().map(|part| (*part).to_owned()).collect()),
        )
    };
    for (trigger, part) in [
        (snapshot("here"), "must be absolute"),
        (snapshot("/a").named("../x"), "letters"),
        (snapshot("/a").named("x".repeat(65)), "letters"),
        (snapshot("/a").keep(0), "more than 0"),
        (snapshot("/a").every(0), "more than 0"),
        (snapshot("/a").every(2).once_after(2), "either"),
        (snapshot("/a").limit("often"), "expected for example"),
        (snapshot("/a").limit("5/h burst 7"), "without a burst"),
        (snapshot("/a").limit("5000/h"), "at most 1000"),
        (snapshot("/a").max_size(u64::MAX), "63 bits"),
        (snapshot("/a").before(Duration::ZERO), "more than 0"),
        (snapshot("/a").after(Duration::from_secs(3601)), "an hour"),
        (on(TriggerCondition::Panic).before(Duration::from_secs(1)), "it takes none"),
        (on(TriggerCondition::Event(Rule::new("a:b").limit("5/s"))), "takes a limit"),
        (on(TriggerCondition::Event(Rule::new("a:b").filter("x >"))), "filter"),
        (on(TriggerCondition::Size(u64::MAX)), "63 bits"),
        (run(&[]), "takes a program"),
        (run(&["true"]), "must be absolute"),
        (run(&["/bin/true", "a\0b"]), "NUL"),
        (run(&["/bin/true", &"x".repeat(64 << 10)]), "bytes"),
        ((0..16).fold(on(TriggerCondition::Panic), |trigger, _| trigger.then(TriggerAction::Notify)), "1 to 16"),
    ] {
        let error = SessionSpec::new().add_trigger(&trigger).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}
