//! What is read of a `session.toml`, and what is refused.

use super::*;
use crate::process::ProcessKey;
use proptest::prelude::*;
use tracepoint_core::channel::Channel;

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
    spec.channels.push(ChannelSpec::overwrite(64 << 10).named("flight"));
    spec.channels[0].contexts = vec!["thread".to_owned(), "cpu".to_owned()];
    rule.channel = Some("flight".to_owned());
    assert!(spec.add_rule(&rule)?);
    assert!(!spec.add_rule(&rule)?, "it is there already");
    assert!(spec.add_rule(&Rule::new("!sched:idle"))?);
    Ok(spec)
}

#[test]
fn what_is_written_is_read() -> Outcome {
    let spec = spec()?;
    let text = spec.to_toml()?;
    assert_eq!(SessionSpec::parse_strictly(text.as_bytes())?, spec, "{text}");
    Ok(())
}

/// Nothing that is cut off is taken for whole, unless what is missing are rules or blanks at the end; and nothing panics.
#[test]
fn a_half_written_file_is_no_session_or_one_with_fewer_rules() -> Outcome {
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
fn a_rule_that_is_not_known_is_one_alone() -> Outcome {
    let text = spec()?.to_toml()?
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
    assert_eq!(SessionSpec::parse(spec.to_toml()?.as_bytes())?, spec);
    Ok(())
}

#[test]
fn what_is_not_known_is_told() -> Outcome {
    let text = spec()?.to_toml()?;
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
        ("kind = \"ctf\"", "kind = \"tape\"", "there are ctf, dt, text, udp"),
        ("path = \"/tmp/out\"", "path = \"out\"", "not absolute"),
        ("path = \"/tmp/out\"", "", "not absolute"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nslots = 7", "`slots` is for sinks of the kind dt, not for `ctf`"),
        ("kind = \"ctf\"", "kind = \"udp\"", "`path` is for sinks of the kind ctf and dt and text"),
        ("kind = \"ctf\"", "kind = \"dt\"\nslots = 0", "from 1 to"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nkeep = 1", "2 at least"),
        ("kind = \"ctf\"", "kind = \"ctf\"\nrotate_size = 0", "more than 0"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        let error = SessionSpec::parse(text.replace(from, to).as_bytes()).expect_err(to).to_string();
        assert!(error.contains(part), "{to}: {error}");
    }
    Ok(())
}

type Change = &'static dyn Fn(&mut SessionSpec);

/// TOML has numbers of 63 bits: what does not fit is told when it is asked for, and never written.
#[test]
fn numbers_that_no_file_can_hold_are_refused() -> Outcome {
    let refused = |change: Change| {
        let mut spec = spec()?;
        change(&mut spec);
        let error = spec.check().err().ok_or_else(|| SpecError::malformed("it was taken"))?;
        assert_eq!(spec.to_toml(), Err(error.clone()));
        Ok::<_, SpecError>(error.to_string())
    };
    let changes: [(&str, Change); 11] = [
        ("ring_size", &|spec| spec.channel.ring_size = usize::MAX),
        ("ring_size", &|spec| spec.channels[0].ring_size = usize::MAX),
        ("packets", &|spec| spec.channel.packets = usize::MAX),
        ("spares", &|spec| spec.channel.spares = usize::MAX),
        ("max_rings", &|spec| spec.channel.max_rings = Some(1 << 63)),
        ("memory_cap", &|spec| spec.limits.memory_cap = u64::MAX),
        ("keep_dead", &|spec| spec.limits.keep_dead = usize::MAX),
        ("keep_dead_bytes", &|spec| spec.limits.keep_dead_bytes = 1 << 63),
        ("max_size", &|spec| spec.sinks[0].max_size = u64::MAX),
        ("rotate_size", &|spec| spec.sinks[0].rotate_size = Some(u64::MAX)),
        ("generation", &|spec| spec.generation = u64::MAX),
    ];
    for (key, change) in changes {
        let error = refused(change)?;
        assert!(error.contains(&format!("`{key}` is ")) && error.contains("9223372036854775807"), "{error}");
    }
    let mut most = spec()?;
    most.sinks[0].max_size = i64::MAX as u64;
    assert_eq!(SessionSpec::parse(most.to_toml()?.as_bytes())?, most);
    Ok(())
}

/// What each kind of sink has is written and read.
#[test]
fn sinks_of_each_kind_are_kept() -> Outcome {
    let mut spec = spec()?;
    (spec.sinks[0].rotate_size, spec.sinks[0].rotate_every_ms, spec.sinks[0].keep) = (Some(1), Some(2), Some(3));
    let mut dt = SinkSpec::dt("/tmp/x.dt");
    dt.slots = Some(7);
    let mut udp = SinkSpec::udp(([127, 0, 0, 1], 5556).into());
    (udp.limit, udp.drop) = (Some(1 << 20), Some("newest".to_owned()));
    spec.sinks.extend([dt, udp, SinkSpec::text("/tmp/x.txt"), SinkSpec::standard_error()]);
    spec.rotations = 4;
    assert_eq!(SessionSpec::parse_strictly(spec.to_toml()?.as_bytes())?, spec);
    let udp = &spec.sinks[2];
    assert_eq!(udp.socket_address(), ([127, 0, 0, 1], 5556).into());
    assert_eq!(SinkSpec::udp(([0, 0, 0, 0], 0).into()).socket_address().port(), 0);
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
fn channels_that_cannot_be_are_refused_with_what_would_do() -> Outcome {
    let taken = |name: &str, text: &str| format!("two channels are called `{name}`; give each {text}");
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
        ("channel `flight`: the policy `keep` is not known".to_owned(), &|spec| {
            spec.channels[0].policy = "keep".to_owned();
        }),
        ("channel `flight`: the context `weather` is not known; there are process".to_owned(), &|spec| {
            spec.channels[0].contexts.push("weather".to_owned());
        }),
        ("channel `further`: without a sink".to_owned(), &|spec| {
            spec.sinks.clear();
            spec.channel = ChannelSpec::overwrite(1 << 20);
            spec.channels.push(ChannelSpec::default().named("further"));
        }),
        ("17 channels, and a session has 16 at most".to_owned(), &|spec| {
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

/// Each of them has packets that have to fit.
#[test]
fn a_dt_file_has_room_for_the_packets_of_each_channel() -> Outcome {
    let mut spec = spec()?;
    let mut dt = SinkSpec::dt("/tmp/out.dt");
    dt.max_size = 64 << 20;
    spec.sinks.push(dt);
    spec.check()?;
    spec.channels[0].ring_size = 8 << 20;
    let error = spec.check().expect_err("256 packets of 1 MiB").to_string();
    assert!(error.contains("256 packets of 1048576 bytes"), "{error}");
    Ok(())
}

/// As with all that an agent does not know of a rule.
#[test]
fn a_rule_that_names_no_channel_is_one_alone() -> Outcome {
    let text = spec()?.to_toml()? + "\n[[rule]]\nevent = \"a:*\"\nchannel = \"b\"\n";
    let spec = SessionSpec::parse(text.as_bytes())?;
    let told: Vec<_> = spec.rules().map(|rule| rule.map_err(ToString::to_string)).collect();
    assert!(told[0].is_ok() && told[1].is_ok());
    let error = told[2].as_ref().expect_err("no such channel");
    assert_eq!(error, "rule `a:*`: the session has no channel `b`; it has channel0, flight");
    assert!(matches!(SessionSpec::parse_strictly(text.as_bytes()), Err(SpecError::Rule(_))));
    let mut rule = Rule::new("a:*");
    rule.channel = Some("b".to_owned());
    let added = spec.clone().add_rule(&rule);
    assert!(matches!(added, Err(SpecError::Rule(_))), "{added:?}");
    Ok(())
}

#[test]
fn a_session_that_is_drained_from_outside_has_no_sinks() -> Outcome {
    let mut outside = SessionSpec::new();
    outside.drain = DrainedBy::Outside;
    let text = outside.to_toml()?;
    assert!(text.contains("drain = \"outside\""), "{text}");
    assert_eq!(SessionSpec::parse(text.as_bytes())?, outside);
    assert!(!spec()?.to_toml()?.contains("drain"), "an agent that does not know it need not");
    let refused = |change: &dyn Fn(&mut SessionSpec)| {
        let mut spec = outside.clone();
        change(&mut spec);
        spec.to_toml().map_err(|error| error.to_string()).expect_err("it cannot be")
    };
    assert!(refused(&|spec| spec.sinks.push(SinkSpec::ctf("/tmp/out"))).contains("no sinks of its own"));
    assert!(refused(&|spec| spec.channel.policy = "overwrite".to_owned()).contains("the policy `discard`"));
    assert!(refused(&|spec| spec.channels.push(ChannelSpec::overwrite(64 << 10).named("x"))).contains("channel `x`"));
    // The sinks of whoever drains it are held against its packets.
    assert!(outside.check_sinks(&[SinkSpec::ctf("/tmp/out")]).is_ok());
    let mut large = SinkSpec::dt("/tmp/x.dt");
    large.slots = Some(100_000);
    assert!(outside.check_sinks(&[large]).is_err_and(|error| error.to_string().contains("fewer slots")));
    Ok(())
}

/// What a channel says in code it says in a file.
#[test]
fn a_channel_in_code_is_one_in_a_file() -> Outcome {
    use tracepoint_core::context::Context;
    let plain = Channel::discard(1 << 20);
    let all = Channel::wait(64 << 10, std::time::Duration::from_millis(20))
        .name("x")
        .packets(4)
        .spares(2)
        .at_first(1)
        .max_rings(9)
        .context(Context::CallStack)
        .context(Context::Thread)
        .call_stack_depth(3);
    assert_eq!(ChannelSpec::from(&plain), ChannelSpec::default());
    for channel in [plain, all, Channel::overwrite(1 << 20), Channel::overwrite(1 << 20).max_rings(7)] {
        assert_eq!(ChannelSpec::from(&channel).channel(), channel);
        let mut spec = SessionSpec::new();
        spec.sinks.push(SinkSpec::standard_error());
        spec.channel = ChannelSpec::from(&channel);
        assert_eq!(SessionSpec::parse(spec.to_toml()?.as_bytes())?.channel.channel(), channel);
    }
    Ok(())
}
