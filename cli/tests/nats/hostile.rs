//! Anyone with publishing rights can publish arbitrary data.

use crate::broker::{Broker, is_there};
use crate::programs::{Collect, Record};
use crate::seed::seed;
use crate::stored::{assert_once, assert_verified, traces};
use crate::{is_traced, wait_for};
use tempfile::TempDir;

#[test]
fn messages_that_are_no_traces_harm_nothing() {
    if is_traced() || !is_there() {
        return;
    }
    let mut random = seed();
    eprintln!("TRACEPOINT_SEED={random}");
    let place = TempDir::new_in("/dev/shm").unwrap();
    let place = place.path();
    let broker = Broker::start(place);
    let test = "hostile::messages_that_are_no_traces_harm_nothing";
    Record::start(place, "record", &broker.url(), (test, "3000 10"), &[]).finish();
    let messages = broker.state().messages;
    broker.ask(|context| async move {
        let stream = context.get_stream("TRACEPOINT").await.unwrap();
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 33
        };
        let mut true_subjects = Vec::new();
        for sequence in 1..=messages {
            let message = stream.get_raw_message(sequence).await.unwrap();
            // All messages of the trace again, damaged and under another name.
            let mut payload = message.payload.to_vec();
            let at = next() as usize % payload.len();
            payload[at] ^= 1 << (next() % 8);
            payload.truncate(payload.len() - next() as usize % 2 * (payload.len() / 3));
            let (_, token) = message.subject.rsplit_once('.').unwrap();
            let other = format!("tracepoint.vm.other-{}.{token}", next() % 3);
            for (subject, payload) in
                [(message.subject.to_string(), payload.clone()), (other, message.payload.to_vec())]
            {
                context.publish(subject, payload.into()).await.unwrap().await.unwrap();
            }
            true_subjects.push(message.subject.to_string());
        }
        for subject in [
            "tracepoint.a",
            "tracepoint.a.b.=hello",
            "tracepoint.a.b.=control",
            "tracepoint.=2E=2E.=2F.=hello",
            "tracepoint.a.b.c.d.e",
        ] {
            for length in [0, 1, 23, 24, 100, 5000] {
                let payload: Vec<u8> = (0..length).map(|_| next() as u8).collect();
                context.publish(subject, payload.into()).await.unwrap().await.unwrap();
            }
        }
        // An invalid entry in the bucket of leases.
        let leases = context.create_stream(async_nats::jetstream::stream::Config {
            name: "KV_tracepoint-leases".to_owned(),
            subjects: vec!["$KV.tracepoint-leases.>".to_owned()],
            max_messages_per_subject: 1,
            ..Default::default()
        });
        leases.await.unwrap();
        for (key, value) in [("a.b", "{}"), ("vm.other-1", "[[[["), ("x", "")] {
            context.publish(format!("$KV.tracepoint-leases.{key}"), value.into()).await.unwrap().await.unwrap();
        }
    });
    let collect = Collect::start(place, "a", &broker.url(), &["--lease", "2s"]);
    let output = collect.output.clone();
    wait_for("the true trace is stored", || {
        let stored = traces(&output);
        let account = stored.first()?.join(".account/account.json");
        std::fs::read_to_string(account)
            .ok()
            .filter(|text| text.contains("\"last\":true") || text.contains("\"last\": true"))
            .map(drop)
    });
    wait_for("it is done", || collect.said().contains(" ended").then_some(()));
    let said = collect.said();
    assert!(said.contains("its beginning is malformed, or is that of another trace"), "{said}");
    assert!(said.contains("is damaged; delete it (`nats kv del tracepoint-leases"), "{said}");
    let counts = collect.end();
    assert!(counts["damaged"].as_u64() > Some(0), "{counts}");
    assert_eq!(traces(&output).len(), 1, "nothing else has a directory");
    assert_once(&[&output], 3000, "the true trace");
    assert_verified(place, &[&output]);
}
