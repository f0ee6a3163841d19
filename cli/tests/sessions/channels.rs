//! Sessions with several channels.

use super::{Outcome, Place, counters, is_traced, viewed};
use tracepoint_controller::Controller;
use tracepoint_run_dir::RunDir;

#[test]
fn rules_use_the_channels_that_they_name() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("channels::rules_use_the_channels_that_they_name");
    // Large enough that nothing is overwritten, regardless of how long the commands take.
    let flight = "flight:policy=overwrite,ring-size=4M,packets=4,contexts=thread+thread_name";
    place.well(&["create", "both", "-e", "shop:paid", "-o", "out", "--add-channel", flight, "--add-channel", "more"]);
    place.well(&["start", "both"]);
    place.well(&["enable", "both", "-e", "shop:looked", "--channel", "flight"]);
    place.well(&["enable", "both", "-e", "shop:paid", "--channel", "flight", "--filter", "cents & 1"]);
    assert_eq!(place.on(), ["shop:looked", "shop:paid"]);
    let shown = place.well(&["status", "both"]);
    for part in [
        "  channel channel0: rings of 1.00 MiB, discard\n",
        "  channel flight: rings of 4.00 MiB, overwrite, with thread, thread_name\n",
        "  channel more: rings of 1.00 MiB, discard\n",
        "  `shop:paid`\n",
        "  `shop:looked` --channel 'flight'\n",
        "  `shop:paid` --filter 'cents & 1' --channel 'flight'\n",
        "    channel flight  ",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert_eq!(counters(&shown)[..2], ["recording", "2"], "{shown}");
    let status: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json", "both"]))?;
    let session = &status["sessions"][0];
    let of = |key: &str| {
        session["channels"].as_array().into_iter().flatten().map(|channel| channel[key].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("name"), ["channel0", "flight", "more"]);
    assert_eq!(of("policy"), ["discard", "overwrite", "discard"]);
    assert_eq!(session["channel"]["ring_size"], 1 << 20);
    assert_eq!(
        (&session["rules"][0]["channel"], &session["rules"][1]["channel"]),
        (&serde_json::Value::Null, &"flight".into())
    );

    let (code, _, err) = place.tracectl(&["snapshot", "both", "-o", "snapshot"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(viewed(&place.path("snapshot"), " shop:looked: ") > 0);
    let (code, out, err) = place.tracectl(&["verify", "snapshot"]);
    assert!(code == Some(0) && out.contains("snapshot, the session goes on"), "{out}{err}");
    place.well(&["save", "both", "saved.toml"]);
    place.well(&["disable", "both", "-e", "shop:looked", "--channel", "flight"]);
    assert_eq!(place.on(), ["shop:paid"]);
    place.well(&["destroy", "both"]);
    let out = std::fs::read_dir(place.path("out"))?.next().ok_or("a trace")??.path();
    assert_eq!(place.tracectl(&["verify", &out.display().to_string()]).0, Some(0));
    // Events that match both rules are in both channels, once with the name of the thread.
    assert!(viewed(&out, " shop:paid: ") > viewed(&out, "procname = "));

    place.well(&["load", "again", "saved.toml"]);
    assert_eq!(place.on(), ["shop:looked", "shop:paid"]);
    let shown = place.well(&["status", "again"]);
    assert!(
        shown.contains("channel flight: rings of 4.00 MiB, overwrite") && shown.contains("--channel 'flight'"),
        "{shown}"
    );
    place.well(&["destroy", "again"]);
    Ok(())
}

#[test]
fn a_server_serves_the_events_of_all_channels() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("channels::a_server_serves_the_events_of_all_channels");
    place.well(&["create", "live", "-e", "shop:paid", "--udp", "127.0.0.1", "--add-channel", "more:contexts=process"]);
    place.well(&["enable", "live", "-e", "shop:looked", "--channel", "more"]);
    place.well(&["start", "live"]);
    let status: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json"]))?;
    let server = status["sessions"][0]["processes"][0]["servers"][0].as_str().ok_or("no server")?;
    let port = server.strip_prefix("127.0.0.1:").ok_or("another address")?;
    let (_, lines, err) = place.tracectl(&["read", "--server-port", port, "--events-limit", "2000"]);
    let of = |name: &str| lines.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
    let (paid, looked) = (of("shop:paid"), of("shop:looked"));
    assert!(!paid.is_empty() && !looked.is_empty(), "{lines}{err}");
    assert!(
        looked.iter().all(|line| line.contains("vpid")) && !paid.iter().any(|line| line.contains("vpid")),
        "{lines}"
    );
    place.well(&["destroy", "live"]);
    Ok(())
}

/// With the verbs of the command line, in a process that records continuously.
#[test]
fn outputs_and_channels_are_added_and_removed_while_recording() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("channels::outputs_and_channels_are_added_and_removed_while_recording");
    place.well(&["create", "live", "-e", "shop:paid", "-o", "first", "--start"]);
    place.well(&["enable", "live", "-o", "second", "--text", "lines.txt"]);
    place.well(&["enable", "live", "-e", "shop:looked", "--add-channel", "more", "--channel", "more"]);
    let shown = place.well(&["status", "live"]);
    for part in ["ctf in", "second", "text in", "channel more: rings"] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    place.well(&["enable", "live", "-e", "shop:paid", "--filter", "cents & 1"]);
    assert!(place.well(&["status", "live"]).contains("`shop:paid` --filter 'cents & 1'"));
    place.well(&["disable", "live", "-o", "first", "--text", "lines.txt", "--remove-channel", "more"]);
    assert_eq!(place.tracectl(&["verify", "first"]).0, Some(0));
    assert!(viewed(&place.path("first"), " shop:paid: ") > 0);
    assert!(!place.well(&["status", "live"]).contains("text in"));
    let status: serde_json::Value = serde_json::from_str(&place.well(&["status", "--json", "live"]))?;
    assert_eq!(status["sessions"][0]["processes"][0]["events"], 1, "{status}");
    for (more, part) in [
        (&["-o", "first"][..], "the session live has no output `-o "),
        (&["--remove-channel", "more"], "the session live has no additional channel `more`; it has none"),
        (&["-o", "second"], "channel `channel0`: without a sink"),
    ] {
        let err = place.refused(&[&["disable", "live"], more].concat());
        assert!(err.contains(part), "{more:?}: {err}");
    }
    place.well(&["destroy", "live"]);
    assert_eq!(place.tracectl(&["verify", "second"]).0, Some(0));
    Ok(())
}

#[test]
fn invalid_channels_are_refused() {
    let place = Place::new();
    let create = ["create", "bad", "-e", "*", "--wait"];
    for (more, part) in [
        (&["-o", "o", "--add-channel", "a:size=1"][..], "a channel has no setting `size`; there are policy, ring-size"),
        (&["-o", "o", "--add-channel", "a/b"], "`a/b` is not a channel name: use 1 to 64 letters"),
        (&["-o", "o", "--add-channel", ""], "`` is not a channel name"),
        (&["-o", "o", "--add-channel", "channel0"], "two channels are called `channel0`; give each"),
        (&["-o", "o", "--add-channel", "a", "--add-channel", "a"], "two channels are called `a`"),
        (&["-o", "o", "--channel", "a"], "the session has no channel `a`; it has channel0"),
        (&["-o", "o", "--add-channel", "a:policy=keep"], "channel `a`: unknown policy `keep`; there are"),
        (&["--add-channel", "a:policy=discard"], "channel `a`: without a sink"),
        (&["-o", "o", "--add-channel", "a:ring-size=1K"], "channel `a`: a ring of 1024 bytes in 8 packets"),
        (&["-o", "o", "--context", "weather"], "unknown context `weather`; there are process"),
    ] {
        let (code, out, err) = place.tracectl(&[&create[..], more].concat());
        assert!(matches!(code, Some(2 | 3)) && out.is_empty(), "{more:?}: {code:?} {out}");
        assert!(err.contains(part), "{more:?}: {err}");
    }
    // Without sinks, all channels overwrite.
    place.well(&[&create[..], &["--add-channel", "a"]].concat());
    assert!(place.well(&["status", "bad"]).contains("channel a: rings of 1.00 MiB, overwrite"));
    let err = place.refused(&["enable", "bad", "-e", "x:*", "--channel", "b", "--wait"]);
    assert!(err.contains("the session has no channel `b`; it has channel0, a"), "{err}");
}

/// `tracectl` has no verb for this; a program or an editor changes the description.
#[test]
fn changed_settings_of_a_channel_are_told() -> Outcome {
    if is_traced() {
        return Ok(());
    }
    let place = Place::new();
    let _traced = place.start("channels::changed_settings_of_a_channel_are_told");
    place.well(&["create", "live", "-e", "shop:paid", "-o", "out", "--start"]);
    let controller = Controller::at(RunDir::at(&place.path("run"))?)?;
    controller.session("live")?.change("more packets", |spec| {
        spec.channel.packets = 4;
        Ok(())
    })?;
    let told = "channel `channel0`: `packets` changed, which applies to the next recording: `tracectl stop live`, then `tracectl start live`";
    let (code, _, err) = place.tracectl(&["enable", "live", "-e", "shop:looked"]);
    assert!(code == Some(0) && err.contains(told), "{err}");
    assert!(place.well(&["status", "live"]).contains(told));
    place.well(&["stop", "live"]);
    place.well(&["start", "live"]);
    assert!(!place.well(&["status", "live"]).contains("`packets` changed"));
    place.well(&["destroy", "live"]);
    Ok(())
}
