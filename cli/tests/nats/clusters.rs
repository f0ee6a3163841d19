//! A cluster of three servers with three replicas of each message.

use crate::broker::{Broker, free_port, is_there};
use crate::programs::{Collect, Record};
use crate::stored::{accounts, assert_once, assert_verified};
use crate::{is_traced, wait_for};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn a_server_of_three_may_be_killed() {
    if is_traced() || !is_there() {
        return;
    }
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let ports: Vec<_> = (0..3).map(|_| (free_port(), free_port())).collect();
    let routes: Vec<_> = ports.iter().map(|(_, route)| format!("nats://127.0.0.1:{route}")).collect();
    let mut servers: Vec<_> = ports
        .iter()
        .zip(["one", "two", "three"])
        .map(|((port, route), name)| {
            let routes = routes.join(", ");
            let settings = format!("cluster {{ name: traces, listen: \"127.0.0.1:{route}\", routes: [{routes}] }}");
            Broker::member(place, name, *port, &settings)
        })
        .collect();
    let urls: Vec<_> = servers.iter().map(Broker::url).collect();
    let url = format!("{}?replicas=3", urls.join(","));
    // A sender creates the stream once the servers have elected a leader.
    let test = "clusters::a_server_of_three_may_be_killed";
    let options = ["--add-channel", "own:ring-size=8M,packets=256", "--channel", "own", "--retry", "60s"];
    let collect = Collect::start(place, "a", &url, &["--lease", "30s"]);
    let record = Record::start(place, "record", &url, (test, "20000 1200"), &options);
    wait_for("the trace is collected", || collect.said().contains(" began in ").then_some(()));
    let replicas = servers[0].ask(|context| async move {
        context.get_stream("TRACEPOINT").await.unwrap().cached_info().config.num_replicas
    });
    assert_eq!(replicas, 3);
    // One at a time: the others are up to date when the next one is killed.
    for number in 0..servers.len() {
        wait_for("all servers are up to date", || is_current(&servers[(number + 1) % 3]).then_some(()));
        servers[number].kill();
        sleep(Duration::from_millis(700));
        servers[number].restart();
    }
    let report = record.finish();
    assert_eq!((report["recorded"].as_u64(), report["lost"].as_u64()), (Some(40_000), Some(0)), "{report}");
    wait_for("the trace is stored", || collect.said().contains(" ended").then_some(()));
    let output = collect.output.clone();
    let told = format!("a cluster: {}", collect.said());
    let counts = collect.end();
    assert_once(&[&output], 20_000, &format!("{told}{counts}"));
    assert_eq!(accounts(&[&output]), (40_000, 0));
    assert_verified(place, &[&output]);
}

/// True if all servers are up to date with the leaders of both streams.
fn is_current(broker: &Broker) -> bool {
    broker.ask(|context| async move {
        let mut is_current = true;
        for name in ["TRACEPOINT", "KV_tracepoint-leases"] {
            let Ok(stream) = context.get_stream(name).await else { return false };
            let cluster = stream.cached_info().cluster.as_ref();
            is_current &= cluster.is_some_and(|cluster| {
                cluster.leader.is_some()
                    && cluster.replicas.len() == 2
                    && cluster.replicas.iter().all(|replica| replica.current && !replica.offline)
            });
        }
        is_current
    })
}
