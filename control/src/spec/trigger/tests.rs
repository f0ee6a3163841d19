//! Triggers in `session.toml`.

use super::super::SessionSpec;
use super::{Do, TriggerSpec, When};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn triggers_are_written_and_read() -> Outcome {
    let mut spec = SessionSpec::new();
    spec.channel.policy = "overwrite".to_owned();
    let snapshot = || Do::Snapshot("/var/tmp/x".into());
    assert_eq!(spec.trigger(When::CoreDump, snapshot())?, "t1");
    assert_eq!(spec.trigger(When::CoreDump, snapshot())?, "t1", "it exists already");
    let second = TriggerSpec::new(When::CoreDump, snapshot()).then(Do::Stop).every(3).limit("5/h").keep(2).max_size(7);
    assert_eq!(spec.add_trigger(&second)?, "t2");
    assert_eq!(spec.add_trigger(&second.clone().named("mine"))?, "mine");
    assert!(spec.add_trigger(&second.named("mine")).is_err(), "the id is taken");
    let text = spec.to_toml()?;
    assert_eq!(SessionSpec::parse_strictly(text.as_bytes())?, spec, "{text}");
    assert!(spec.remove_trigger("t1") && !spec.remove_trigger("t1"));
    assert_eq!(spec.trigger(When::CoreDump, Do::Stop)?, "t1");
    Ok(())
}

/// A trigger of a newer version is kept as it is, and the others are used.
#[test]
fn an_unknown_trigger_is_kept() -> Outcome {
    let mut spec = SessionSpec::new();
    spec.channel.policy = "overwrite".to_owned();
    spec.trigger(When::CoreDump, Do::Stop)?;
    let newer = "\n[[trigger]]\nid = \"new\"\nwhen = \"OnFullMoon\"\nactions = [\"howl\"]\n";
    let read = SessionSpec::parse((spec.to_toml()? + newer).as_bytes())?;
    let [Ok(known), Err(error)] = &read.triggers().collect::<Vec<_>>()[..] else { panic!("{read:?}") };
    assert_eq!((known.id.as_str(), known.when), ("t1", When::CoreDump));
    assert!(error.to_string().contains("trigger `new` is not supported"), "{error}");
    let written = read.to_toml()?;
    assert!(written.contains("OnFullMoon") && SessionSpec::parse(written.as_bytes())? == read, "{written}");
    assert!(SessionSpec::parse_strictly(written.as_bytes()).is_err());
    let mut without = read;
    assert!(without.remove_trigger("new"));
    assert_eq!(without, spec);
    Ok(())
}

#[test]
fn invalid_triggers_are_refused() {
    let snapshot = |path: &str| TriggerSpec::new(When::CoreDump, Do::Snapshot(path.into()));
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
    ] {
        let error = SessionSpec::new().add_trigger(&trigger).expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}
