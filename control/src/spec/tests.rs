//! What is read of a `session.toml`, and what is refused.

use super::*;
use crate::process::ProcessKey;
use proptest::prelude::*;
use tracepoint::Level;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn spec() -> Result<SessionSpec, SpecError> {
    let mut spec = SessionSpec::new();
    spec.owner = Some(Owner::this_process());
    spec.tag = Some("t".to_owned());
    spec.channel.max_rings = Some(3);
    spec.budget = Some(BudgetSpec::new("1.5%".parse().ok(), Some(10 << 20)));
    spec.sinks.push(SinkSpec::ctf("/tmp/out"));
    let mut rule = Rule::new("sched:*");
    rule.level = Some("<=info".to_owned());
    rule.exe = Some("server*".to_owned());
    rule.process = Some(ProcessKey { pid: 7, started: 4711 });
    rule.filter = Some("prev_comm == \"a\\\"b*\" && n > 1".to_owned());
    rule.limit = Some("1000/s burst 20".to_owned());
    assert!(spec.add_rule(&rule)?);
    assert!(!spec.add_rule(&rule)?, "it is there already");
    assert!(spec.add_rule(&Rule::new("!sched:idle"))?);
    Ok(spec)
}

#[test]
fn what_is_written_is_read() -> Outcome {
    let spec = spec()?;
    let text = spec.to_toml();
    assert_eq!(SessionSpec::parse_strictly(text.as_bytes())?, spec, "{text}");
    Ok(())
}

/// Nothing that is cut off is taken for whole, unless what is missing are rules or blanks at the end; and nothing panics.
#[test]
fn a_half_written_file_is_no_session_or_one_with_fewer_rules() -> Outcome {
    let spec = spec()?;
    let text = spec.to_toml();
    let rules = text.find("[[rule]]").ok_or("no rules")?;
    for len in 0..rules {
        if let Ok(part) = SessionSpec::parse(&text.as_bytes()[..len]) {
            assert!(part.rules.is_empty() && part.id == spec.id, "{len}");
        }
    }
    assert!(SessionSpec::parse(&text.as_bytes()[..60]).is_err());
    Ok(())
}

#[test]
fn a_rule_that_is_not_known_is_one_alone() -> Outcome {
    let text = spec()?.to_toml()
        + "\n[[rule]]\nevent = \"a:*\"\nsampled = 7\n\n[[rule]]\nevent = \"b:*\"\nlevel = \"<=loud\"\n\n[[rule]]\nevent = \"c:*\"\nfilter = \"n >\"\n";
    let spec = SessionSpec::parse(text.as_bytes())?;
    let told: Vec<_> =
        spec.rules().map(|rule| rule.map(|rule| rule.event.as_str()).map_err(ToString::to_string)).collect();
    assert_eq!(told[..2], [Ok("sched:*"), Ok("!sched:idle")]);
    let [Err(key), Err(level), Err(filter)] = &told[2..] else { return Err(format!("{told:?}").into()) };
    assert!(key.contains("`a:*`") && key.contains("unknown field `sampled`"), "{key}");
    assert!(level.contains("no level"), "{level}");
    assert!(filter.contains("`c:*`") && filter.ends_with("\n  n >\n     ^"), "{filter}");
    assert!(matches!(SessionSpec::parse_strictly(text.as_bytes()), Err(SpecError::Rule(_))));
    // Whoever does not know it does not lose it.
    assert_eq!(SessionSpec::parse(spec.to_toml().as_bytes())?, spec);
    Ok(())
}

#[test]
fn what_is_not_known_is_told() -> Outcome {
    let text = spec()?.to_toml();
    for (from, to, part) in [
        ("version = 1", "version = 2", "newest"),
        ("version = 1", "", "no `version`"),
        ("tracepoint-session", "tracepoint", "`format`"),
        ("state = \"stopped\"", "state = \"asleep\"", "asleep"),
        ("state = \"stopped\"", "mood = 7\nstate = \"stopped\"", "unknown field `mood`"),
        ("policy = \"discard\"", "policy = \"forget\"", "there are discard, overwrite, wait"),
        ("cpu_percent = 1.5", "cpu_percent = 0", "no budget"),
        ("bytes_per_second = 10485760", "bytes_per_second = -1", "-1"),
        ("bytes_per_second = 10485760", "bytes_per_hour = 1", "unknown field"),
        ("kind = \"ctf\"", "kind = \"tape\"", "there is `ctf`"),
        ("path = \"/tmp/out\"", "path = \"out\"", "not absolute"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let error = SessionSpec::parse(text.replace(from, to).as_bytes()).expect_err(to).to_string();
        assert!(error.contains(part), "{to}: {error}");
    }
    Ok(())
}

#[test]
fn rules_choose_events_of_processes() -> Outcome {
    let mut spec = SessionSpec::new();
    let here = ProcessKey { pid: 7, started: 1 };
    for (event, level, exe, process) in [
        ("a:*", None, None, None),
        ("b:*", Some("<=info"), None, None),
        ("!a:idle", None, None, None),
        ("c:*", None, Some("server"), None),
        ("d:*", None, Some("other"), None),
        ("e:*", None, None, Some(ProcessKey { pid: 7, started: 2 })),
        ("nothing:*", None, None, None),
    ] {
        let mut rule = Rule::new(event);
        (rule.level, rule.exe, rule.process) = (level.map(str::to_owned), exe.map(str::to_owned), process);
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
    let selected = select(&spec.rules, here, "/usr/bin/server", &events);
    assert_eq!(selected.chosen, [true, false, true, false, true, false, false]);
    let some = |count| Some(Ok(count));
    assert_eq!(selected.rules, [some(2), some(1), some(1), some(1), None, None, some(0)]);
    Ok(())
}

proptest! {
    /// Bytes from anybody are read or refused.
    #[test]
    fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = SessionSpec::parse(&bytes);
    }

    /// What is changed in one place is read or refused; and what is read can be written.
    #[test]
    fn damage_is_read_or_refused(at in 0_usize..400, byte in any::<u8>()) {
        let mut text = spec().map(|spec| spec.to_toml().into_bytes()).unwrap_or_default();
        let at = at % text.len();
        text[at] = byte;
        if let Ok(spec) = SessionSpec::parse(&text) {
            prop_assert_eq!(SessionSpec::parse(spec.to_toml().as_bytes()), Ok(spec));
        }
    }
}
