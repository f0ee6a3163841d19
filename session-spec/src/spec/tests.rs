//! Parsing of `session.toml`, and refusal of invalid descriptions.

use super::*;
use crate::Limit;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::time::Duration;
use tracepoint_core::channel::Channel;
use tracepoint_reader::process::ProcessKey;

#[path = "../../../tests/support/seed.rs"]
mod seed;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn spec() -> Result<SessionSpec, SpecError> {
    let mut spec = SessionSpec::new();
    spec.owner = Some(Owner { process: ProcessKey::new(7, 4711), namespace: 4_026_531_836, pipe: true });
    spec.tag = Some("t".to_owned());
    spec.channel.max_rings = Some(3);
    spec.budget = Some(BudgetSpec::new("1.5%".parse().ok(), Some(10 << 20)));
    spec.sinks.push(SinkSpec::ctf("/tmp/out").into());
    let rule = Rule::new("sched:*")
        .level("<=info")
        .exe("server*")
        .process(ProcessKey::new(7, 4711))
        .filter("prev_comm == \"a\\\"b*\" && n > 1")
        .limit("1000/s burst 20")
        .channel("flight");
    spec.channels.push(ChannelSpec::overwrite(64 << 10).named("flight"));
    spec.channels[0].contexts = vec!["thread".to_owned(), "cpu".to_owned()];
    assert!(spec.add_rule(&rule)?);
    assert!(!spec.add_rule(&rule)?, "it exists already");
    assert!(spec.add_rule(&Rule::new("!sched:idle"))?);
    Ok(spec)
}

#[test]
fn a_session_round_trips_through_toml() -> Outcome {
    let spec = spec()?;
    let text = spec.to_toml()?;
    assert_eq!(SessionSpec::parse_strictly(text.as_bytes())?, spec, "{text}");
    Ok(())
}

/// The text is a format: it stays as it is, also that of a rule or trigger of a newer version.
#[test]
fn the_text_of_a_session_is_kept() -> Outcome {
    for text in [include_str!("../../tests/golden/session.toml"), include_str!("../../tests/golden/recorder.toml")] {
        let written = SessionSpec::parse(text.as_bytes())?.to_toml()?;
        assert!(written == text, "{written}");
    }
    Ok(())
}

/// A truncated file is refused, unless only rules or blanks at the end are missing; parsing never panics.
#[test]
fn a_truncated_file_is_refused_or_has_fewer_rules() -> Outcome {
    let spec = spec()?;
    let text = spec.to_toml()?;
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
fn an_unknown_rule_does_not_affect_the_others() -> Outcome {
    let text = spec()?.to_toml()?
        + "\n[[rule]]\nevent = \"a:*\"\nsampled = 7\n\n[[rule]]\nevent = \"b:*\"\nlevel = \"<=loud\"\n\n[[rule]]\nevent = \"c:*\"\nfilter = \"n >\"\n";
    let spec = SessionSpec::parse(text.as_bytes())?;
    let rules: Vec<_> =
        spec.rules().map(|rule| rule.map(|rule| rule.event.text()).map_err(ToString::to_string)).collect();
    assert_eq!(rules[..2], [Ok("sched:*"), Ok("!sched:idle")]);
    let [Err(key), Err(level), Err(filter)] = &rules[2..] else { return Err(format!("{rules:?}").into()) };
    assert!(key.contains("`a:*`") && key.contains("unknown field `sampled`"), "{key}");
    assert!(level.contains("not a level"), "{level}");
    assert!(filter.contains("`c:*`") && filter.ends_with("\n  n >\n     ^"), "{filter}");
    assert!(matches!(SessionSpec::parse_strictly(text.as_bytes()), Err(SpecError::Rule(_))));
    // Writing the description again preserves the rules that are not understood.
    assert_eq!(SessionSpec::parse(spec.to_toml()?.as_bytes())?, spec);
    Ok(())
}

#[test]
fn unknown_values_are_reported() -> Outcome {
    let text = spec()?.to_toml()?;
    for (from, to, part) in [
        ("version = 1", "version = 2", "versions up to 1"),
        ("version = 1", "", "no `version`"),
        ("tracepoint-session", "tracepoint", "`format`"),
        ("state = \"stopped\"", "state = \"asleep\"", "asleep"),
        ("state = \"stopped\"", "mood = 7\nstate = \"stopped\"", "unknown field `mood`"),
        ("policy = \"discard\"", "policy = \"forget\"", "there are discard, overwrite, wait"),
        ("cpu_percent = 1.5", "cpu_percent = 0", "no valid budget"),
        ("bytes_per_second = 10485760", "bytes_per_second = -1", "-1"),
        ("bytes_per_second = 10485760", "bytes_per_hour = 1", "unknown field"),
        ("kind = \"ctf\"", "kind = \"tape\"", "there are ctf, dt, stream, text, udp"),
        ("path = \"/tmp/out\"", "path = \"out\"", "must be absolute"),
        ("path = \"/tmp/out\"", "", "must be absolute"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nslots = 7", "`slots` is for sinks of the kind dt, not for `ctf`"),
        ("kind = \"ctf\"", "kind = \"udp\"", "`path` is for sinks of the kind ctf and dt and text"),
        (
            "kind = \"ctf\"",
            "kind = \"ctf\"\nslotz = 7",
            "sink of the kind `ctf`: unknown field `slotz`, expected one of `path`, ",
        ),
        ("kind = \"ctf\"", "kind = \"ctf\"\nkeep = -1", "in `keep`"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nexisting = \"keep\"", "expected `replace` or `dated`\nin `existing`"),
        ("kind = \"ctf\"\n", "", "a sink has no `kind`"),
        (
            "kind = \"ctf\"\nmax_size = 1073741824\npath = \"/tmp/out\"",
            "kind = \"object\"\npath = \"out\"",
            "is an object of a program",
        ),
        (
            "kind = \"ctf\"\nmax_size = 1073741824\npath = \"/tmp/out\"",
            "kind = \"stream\"",
            "needs a table `stream` with `to`",
        ),
        ("kind = \"ctf\"", "kind = \"dt\"\nslots = 0", "from 1 to"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nkeep = 1", "at least 2"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nrotate_size = 0", "more than 0"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let error = SessionSpec::parse(text.replace(from, to).as_bytes()).expect_err(to).to_string();
        assert!(error.contains(part), "{to}: {error}");
    }
    Ok(())
}

type Change = &'static dyn Fn(&mut SessionSpec);

/// Numbers that do not fit into TOML's 63 bits are refused by `check`, and never written.
#[test]
fn numbers_that_no_file_can_hold_are_refused() -> Outcome {
    let refused = |change: Change| {
        let mut spec = spec()?;
        change(&mut spec);
        let error = spec.check().err().ok_or_else(|| SpecError::malformed("it was accepted"))?;
        assert_eq!(spec.to_toml(), Err(error.clone()));
        Ok::<_, SpecError>(error.to_string())
    };
    let changes: [(&str, Change); 12] = [
        ("ring_size", &|spec| spec.channel.ring_size = Some(usize::MAX)),
        ("ring_size", &|spec| spec.channels[0].ring_size = Some(usize::MAX)),
        ("packets", &|spec| spec.channel.packets = usize::MAX),
        ("spares", &|spec| spec.channel.spares = Some(usize::MAX)),
        ("max_rings", &|spec| spec.channel.max_rings = Some(1 << 63)),
        ("memory", &|spec| spec.limits.memory = u64::MAX),
        ("memory_cap", &|spec| spec.limits.memory_cap = Some(u64::MAX)),
        ("keep_dead", &|spec| spec.limits.keep_dead = usize::MAX),
        ("keep_dead_bytes", &|spec| spec.limits.keep_dead_bytes = 1 << 63),
        ("max_size", &|spec| spec.sinks[0] = SinkSpec::ctf("/tmp/out").max_size(u64::MAX).into()),
        ("rotate_size", &|spec| spec.sinks[0] = SinkSpec::ctf("/tmp/out").rotate_size(u64::MAX).into()),
        ("generation", &|spec| spec.generation = u64::MAX),
    ];
    for (key, change) in changes {
        let error = refused(change)?;
        assert!(
            error.contains(&format!("`{key}` is ")) && error.contains("the maximum is 9223372036854775807"),
            "{error}"
        );
    }
    let mut most = spec()?;
    most.sinks[0] = SinkSpec::ctf("/tmp/out").max_size(i64::MAX as u64).into();
    assert_eq!(SessionSpec::parse(most.to_toml()?.as_bytes())?, most);
    Ok(())
}

/// The options of each kind of sink are written and read.
#[test]
fn sinks_of_each_kind_are_kept() -> Outcome {
    let mut spec = spec()?;
    spec.sinks[0] = SinkSpec::ctf("/tmp/out").rotate_size(1).rotate_every(Duration::from_millis(2)).keep(3).into();
    let mut udp = SinkSpec::udp(([127, 0, 0, 1], 5556).into());
    (udp.limit, udp.drop) = (Some(1 << 20), Some(DropPolicy::Newest));
    (udp.allow, udp.rate, udp.pace) = (vec![[192, 0, 2, 7].into(), "::1".parse()?], Some(1 << 20), Some(100));
    assert_eq!(udp.socket_address(), ([127, 0, 0, 1], 5556).into());
    spec.sinks.extend([SinkSpec::dt("/tmp/x.dt").slots(7).into(), udp.into()]);
    spec.sinks.extend([SinkSpec::text("/tmp/x.txt"), SinkSpec::standard_error()].map(SinkSpec::from));
    spec.rotations = 4;
    assert_eq!(SessionSpec::parse_strictly(spec.to_toml()?.as_bytes())?, spec);
    assert_eq!(SinkSpec::udp(([0, 0, 0, 0], 0).into()).socket_address().port(), 0);
    Ok(())
}

/// How the random tests run.
fn random() -> Config {
    Config { rng_seed: RngSeed::Fixed(seed::seed()), ..Config::default() }
}

proptest! {
    #![proptest_config(random())]

    /// Arbitrary bytes are parsed or refused.
    #[test]
    fn any_text_is_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = SessionSpec::parse(&bytes);
    }

    /// A file with one changed byte is parsed or refused, and a parsed file can be written again.
    #[test]
    fn damaged_files_are_parsed_or_refused(at in 0_usize..400, byte in any::<u8>()) {
        let mut text = spec().and_then(|spec| spec.to_toml()).map(String::into_bytes).unwrap_or_default();
        let at = at % text.len();
        text[at] = byte;
        if let Ok(spec) = SessionSpec::parse(&text) {
            prop_assert_eq!(spec.to_toml().and_then(|text| SessionSpec::parse(text.as_bytes())), Ok(spec));
        }
    }
}

#[test]
fn an_older_file_has_the_one_channel() -> Outcome {
    let mut spec = spec()?;
    (spec.channels, spec.rules) = (Vec::new(), Vec::new());
    let text = spec.to_toml()?;
    assert!(!text.contains("channels") && !text.contains("name ="), "{text}");
    let read = SessionSpec::parse_strictly(text.as_bytes())?;
    assert_eq!(read.channel_names(), ["channel0"]);
    Ok(())
}

#[test]
fn the_former_key_of_the_maximum_wait_is_read() -> Outcome {
    let mut spec = spec()?;
    spec.channel.max_wait_ms = Some(50);
    let text = spec.to_toml()?;
    assert!(text.contains("max_wait_ms = 50"), "{text}");
    assert_eq!(SessionSpec::parse_strictly(text.replace("max_wait_ms", "patience_ms").as_bytes())?, spec);
    Ok(())
}

#[test]
fn invalid_channels_are_refused_with_advice() -> Outcome {
    let taken = |name: &str, text: &str| format!("two channels are called `{name}`; give each entry {text}");
    let no_name = "`b/c` is not a channel name: use 1 to 64 letters".to_owned();
    let changes: [(String, Change); 11] = [
        (taken("channel0", "of `[[channels]]` a `name`"), &|spec| spec.channels[0].name = "channel0".to_owned()),
        (taken("flight", ""), &|spec| spec.channels.push(spec.channels[0].clone())),
        (no_name, &|spec| spec.channels.push(ChannelSpec::default().named("b/c"))),
        ("`` is not a channel name".to_owned(), &|spec| spec.channels.push(ChannelSpec::default().named(""))),
        ("is not a channel name".to_owned(), &|spec| spec.channels.push(ChannelSpec::default().named("n".repeat(65)))),
        ("has no channel `flight`; it has channel0, other".to_owned(), &|spec| {
            spec.channels[0].name = "other".to_owned();
        }),
        ("channel `flight`: a ring needs at least 2 packets".to_owned(), &|spec| spec.channels[0].packets = 1),
        ("channel `flight`: unknown policy `keep`; there are".to_owned(), &|spec| {
            spec.channels[0].policy = "keep".to_owned();
        }),
        ("channel `flight`: unknown context `weather`; there are process".to_owned(), &|spec| {
            spec.channels[0].contexts.push("weather".to_owned());
        }),
        ("channel `further`: without a sink".to_owned(), &|spec| {
            spec.sinks.clear();
            spec.channel = ChannelSpec::overwrite(1 << 20);
            spec.channels.push(ChannelSpec::default().named("further"));
        }),
        ("17 channels, and may have at most 16".to_owned(), &|spec| {
            spec.channels.extend((0..15).map(|n| ChannelSpec::default().named(format!("n{n}"))));
        }),
    ];
    for (part, change) in changes {
        let mut spec = spec()?;
        change(&mut spec);
        let error = spec.check().err().ok_or_else(|| part.clone())?.to_string();
        assert!(error.contains(&part), "{part}: {error}");
    }
    let mut most = spec()?;
    most.channels.extend((0..14).map(|n| ChannelSpec::default().named(format!("n{n}"))));
    assert_eq!(SessionSpec::parse_strictly(most.to_toml()?.as_bytes())?, most);
    Ok(())
}

/// The packets of each channel must fit.
#[test]
fn a_dt_file_has_room_for_the_packets_of_each_channel() -> Outcome {
    let mut spec = spec()?;
    spec.sinks.push(SinkSpec::dt("/tmp/out.dt").max_size(64 << 20).into());
    spec.check()?;
    spec.channels[0].ring_size = Some(8 << 20);
    let error = spec.check().expect_err("256 packets of 1 MiB").to_string();
    assert!(error.contains("256 packets of 1048576 bytes"), "{error}");
    Ok(())
}

/// A text that cannot be parsed makes the rule invalid; it is never a rule without that condition.
#[test]
fn a_rule_with_an_invalid_part_is_refused() -> Outcome {
    let mut spec = spec()?;
    for (rule, part) in [
        (Rule::new("sched"), "rule `sched`: it names no provider"),
        (Rule::new("sched:*").level("loud"), "the level `loud` cannot be used"),
        (Rule::new("sched:*").exe("[").level("info"), "`[` is not a pattern for executables"),
        (Rule::new("sched:*").filter("n >").filter("n > 1"), "the filter cannot be used"),
        (Rule::new("sched:*").limit("many"), "the limit `many` cannot be used: expected"),
        (Rule::new("sched:*").limit(Limit::per_second(0)), "lets nothing pass"),
        (Rule::new("sched:*").statistic("sum(n)"), "the statistic cannot be used"),
        (Rule::new("!sched:*").filter("n > 1"), "takes no filter"),
        (Rule::new("sched:*").statistic("count").limit("5/s"), "a limit is for events that are recorded"),
    ] {
        let before = spec.clone();
        let error = spec.add_rule(&rule).expect_err(part).to_string();
        assert!(error.contains(part), "{part}: {error}");
        assert_eq!((spec.enable(&rule).is_err(), spec.disable(&rule), spec.remove_rule(&rule)), (true, 0, 0), "{part}");
        assert_eq!(spec, before);
        spec.push_rule(&rule);
        assert_eq!(spec.first_bad_rule().map(|bad| bad.to_string()), Some(error));
        spec = before;
    }
    Ok(())
}

/// A pattern that could not be parsed stays invalid in another rule.
#[test]
fn an_invalid_pattern_makes_each_rule_invalid() -> Outcome {
    let mut rule = Rule::new("sched:*").limit("5/s");
    rule.event = Rule::new("sched").event;
    let error = spec()?.add_rule(&rule).expect_err("it names no provider").to_string();
    assert!(error.contains("rule `sched`: it names no provider"), "{error}");
    Ok(())
}

/// A file keeps the texts of its rules, which may differ from those of equal rules.
#[test]
fn a_rule_equals_one_that_is_written_in_another_way() -> Outcome {
    let same = [
        ("level = \"info\"", Rule::new("a:*").level("<=info")),
        ("limit = \"100k\"", Rule::new("a:*").limit(Limit::per_second(100_000))),
        ("statistic = \"sample( 1/7 )\"", Rule::new("a:*").statistic("sample(1/7)")),
    ];
    for (text, rule) in same {
        let text = format!("{}\n[[rule]]\nevent = \"a:*\"\n{text}\n", spec()?.to_toml()?);
        let read = SessionSpec::parse_strictly(text.as_bytes())?;
        let mut spec = read.clone();
        assert_eq!((spec.add_rule(&rule), spec.enable(&rule)), (Ok(false), Ok(false)), "{text}");
        spec.push_rule(&rule);
        assert_eq!(spec, read, "{text}");
        assert_eq!((spec.disable(&rule), read.clone().remove_rule(&rule)), (1, 1), "{text}");
    }
    let mut other = spec()?;
    other.add_rule(&Rule::new("a:*").level("==info"))?;
    assert_eq!(other.disable(&Rule::new("a:*").level("info")), 0);
    Ok(())
}

/// A rule that is disabled is named by its target and some of its conditions, which need not be those of a whole rule.
#[test]
fn a_rule_is_disabled_by_some_of_its_conditions() -> Outcome {
    let mut spec = spec()?;
    spec.add_rule(&Rule::new("a:*").statistic("count").record().limit("5/s").channel("flight"))?;
    let some = Rule::new("a:*").statistic("count").limit("5/s").channel("flight");
    assert_eq!((some.check().is_err(), some.check_parts(), spec.disable(&some)), (true, Ok(()), 1));
    assert!(some.level("loud").check_parts().is_err());
    Ok(())
}

/// An agent reports an unknown channel like any other part of a rule that it does not understand.
#[test]
fn a_rule_with_an_unknown_channel_does_not_affect_the_others() -> Outcome {
    let text = spec()?.to_toml()? + "\n[[rule]]\nevent = \"a:*\"\nchannel = \"b\"\n";
    let spec = SessionSpec::parse(text.as_bytes())?;
    let rules: Vec<_> = spec.rules().map(|rule| rule.map_err(ToString::to_string)).collect();
    assert!(rules[0].is_ok() && rules[1].is_ok());
    let error = rules[2].as_ref().expect_err("no such channel");
    assert_eq!(error, "rule `a:*`: the session has no channel `b`; it has channel0, flight");
    assert!(matches!(SessionSpec::parse_strictly(text.as_bytes()), Err(SpecError::Rule(_))));
    let added = spec.clone().add_rule(&Rule::new("a:*").channel("b"));
    assert!(matches!(added, Err(SpecError::Rule(_))), "{added:?}");
    Ok(())
}

#[test]
fn a_remotely_drained_session_has_no_sinks() -> Outcome {
    let mut remote = SessionSpec::new();
    remote.drain = DrainedBy::Recorder;
    let text = remote.to_toml()?;
    assert!(text.contains("drain = \"outside\""), "{text}");
    assert_eq!(SessionSpec::parse(text.as_bytes())?, remote);
    assert!(!spec()?.to_toml()?.contains("drain"), "the default is not written, for agents that do not know the key");
    let refused = |change: &dyn Fn(&mut SessionSpec)| {
        let mut spec = remote.clone();
        change(&mut spec);
        spec.to_toml().map_err(|error| error.to_string()).expect_err("it is invalid")
    };
    assert!(refused(&|spec| spec.sinks.push(SinkSpec::ctf("/tmp/out").into())).contains("no sinks of its own"));
    assert!(refused(&|spec| spec.channel.policy = "overwrite".to_owned()).contains("the policy `discard` or `wait`"));
    let mut waits = remote.clone();
    waits.channel = ChannelSpec::from(&Channel::lossless());
    assert_eq!((&*waits.channel.policy, waits.channel.max_wait()), ("wait", Some(ChannelSpec::LOSSLESS_WAIT)));
    assert_eq!(SessionSpec::parse(waits.to_toml()?.as_bytes())?, waits);
    assert!(refused(&|spec| spec.channels.push(ChannelSpec::overwrite(64 << 10).named("x"))).contains("channel `x`"));
    // The sinks of the remote consumer are checked against the session's packets.
    assert!(remote.check_sinks(&[SinkSpec::ctf("/tmp/out").into()]).is_ok());
    let large = SinkSpec::dt("/tmp/x.dt").slots(100_000);
    assert!(remote.check_sinks(&[large.into()]).is_err_and(|error| error.to_string().contains("fewer slots")));
    Ok(())
}

/// A channel built in code survives conversion to a file and back.
#[test]
fn a_channel_converts_to_a_file_and_back() -> Outcome {
    use tracepoint_core::context::Context;
    let plain = Channel::default();
    let all = Channel::wait(64 << 10, Duration::from_millis(20))
        .name("x")
        .packets(4)
        .spares(2)
        .at_first(1)
        .max_rings(9)
        .context(Context::CallStack)
        .context(Context::Thread)
        .call_stack_depth(3);
    assert_eq!(ChannelSpec::from(&plain), ChannelSpec::default());
    let kept = Channel::discard(1 << 20);
    assert_eq!(ChannelSpec::from(&kept).ring_size, Some(1 << 20));
    let by_need = Channel::overwrite(1 << 20).sized_by_need();
    for channel in [plain, kept, by_need, all, Channel::overwrite(1 << 20), Channel::overwrite(1 << 20).max_rings(7)] {
        assert_eq!(ChannelSpec::from(&channel).channel(), channel);
        let mut spec = SessionSpec::new();
        spec.sinks.push(SinkSpec::standard_error().into());
        spec.channel = ChannelSpec::from(&channel);
        assert_eq!(SessionSpec::parse(spec.to_toml()?.as_bytes())?.channel.channel(), channel);
    }
    Ok(())
}
