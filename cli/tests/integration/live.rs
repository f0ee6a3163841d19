//! `tracectl view` of live sessions of LTTng's programs: a program traced by LTTng-UST, `lttng-sessiond`, `lttng-relayd`.

use crate::lttng::Lttng;

/// Runs before each script: starts the relay daemon on free ports, `$CONTROL`, `$DATA` and `$LIVE`.
const PREAMBLE: &str = r#"
lttng-relayd -o "$PWD/stored" --control-port=tcp://127.0.0.1:$CONTROL --data-port=tcp://127.0.0.1:$DATA \
    --live-port=tcp://127.0.0.1:$LIVE 2>relayd & relayd=$!
relay=net://127.0.0.1:$LIVE
await eval '"$TRACECTL" view $relay 2>answer'
"#;

/// Three ports at which nothing listens.
fn ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}

fn run(place: &Lttng, script: &str) {
    let [control, data, live] = ports().map(|port| port.to_string());
    let tracectl = env!("CARGO_BIN_EXE_tracectl").to_owned();
    let variables = [("CONTROL", control), ("DATA", data), ("LIVE", live), ("TRACECTL", tracectl)];
    place.run(&variables, &[PREAMBLE, script].concat());
}

/// Events of three programs, one of which starts in between; the view is attached before the first.
#[test]
fn a_live_session_is_shown_as_it_is_stored() {
    let Some(place) = Lttng::new(&["lttng-relayd"]) else { return };
    run(
        &place,
        "lttng create shop --live=100000 --ctrl-url=tcp://127.0.0.1:$CONTROL --data-url=tcp://127.0.0.1:$DATA
         lttng enable-channel -u c --subbuf-size=65536 --num-subbuf=16
         lttng enable-event -u -c c 'lttng_ust_tracef:*'
         lttng start
         $TRACECTL view $relay >list
         $TRACECTL view --style babeltrace $relay/host/$HOST/shop >shown 2>errors & view=$!
         await eval '$TRACECTL view $relay | grep -q \"1 viewer\"'
         ./app 0 200 5000 & first=$!
         ./app 200 3200 0
         await has_lines shown 3000
         ./app 3200 3300 1000
         wait $first
         await has_lines shown 3300
         cp shown live
         lttng stop
         lttng destroy
         wait $view
         babeltrace2 stored >stored.txt",
    );
    let file = |name| place.file(name);
    assert!(file("list").contains("/shop (live, every 100ms, "), "{}", file("list"));
    assert_eq!(file("errors"), "");
    assert_eq!(file("stored.txt").lines().count(), 3300);
    assert!(file("shown") == file("stored.txt"), "the lines of babeltrace2, of the stored trace");
    assert!(file("live") == file("shown"), "all of them before the session ended");
}
