//! Tests of a connection before it has a session.

use super::*;
use crate::storage::Storage;
use crate::testing::HELLO;
use std::net::IpAddr;

#[test]
fn no_room_is_made_for_a_sender_with_another_key() {
    let place = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let (sender, _done) = tokio::sync::mpsc::unbounded_channel();
    let storage = Storage::start(0, None, None, sender).expect("a thread");
    let mut hub = Hub::new(place.path().to_owned(), storage);
    let [key, other] = [b"the key of the collector", b"the key of someone else."].map(|key| SharedKey::new(key));
    let (key, other) = (key.expect("a key"), other.expect("a key"));
    let time = Duration::from_secs(1);
    let offer = Offer {
        ports: (1, 2),
        window: 1 << 20,
        name: "collector".to_owned(),
        limits: Limits { packets: 16, bytes: 1 << 20, time, delay: time, end_delay: time },
        key: Some(key.clone()),
        allows_stock: Vec::new(),
        allows_stock_viewers: Vec::new(),
    };
    let address = Address::from(IpAddr::from([127, 0, 0, 1]));
    let mut control = StreamControl::new(offer, address);
    let hello = ToCollector::Hello(HELLO);
    assert_eq!(control.needs_room(&hub, &hello), None);
    control.message(&mut hub, hello, None, [5; 32], Instant::now(), &mut Vec::new()).expect("a challenge");
    let handshake = Handshake { session: [1; 16], sender: [4; 32], collector: [5; 32] };
    for (code, needs) in [
        (other.code(Side::Sender, &handshake), None),
        (key.code(Side::Collector, &handshake), None),
        (key.code(Side::Sender, &handshake), Some((address, None))),
    ] {
        assert_eq!(control.needs_room(&hub, &ToCollector::Auth(code)), needs);
    }
}
