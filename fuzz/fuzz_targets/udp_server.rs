//! Any bytes as a datagram to a UDP trace server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tracepoint_wire::udp::ToServer;
use tracepoint_wire::udp::client::{LONGEST, MIN_MTU};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = ToServer::decode(bytes) else {
        return;
    };
    assert!(bytes.len() <= LONGEST, "nothing longer is a message");
    if let ToServer::Accept(accept) = message {
        assert!(accept.mtu >= MIN_MTU && accept.largest >= accept.mtu);
    }
    // A decoded datagram is encoded to the same bytes, except padding.
    let mut out = Vec::new();
    message.encode(&mut out);
    assert_eq!(out.len(), bytes.len());
    assert_eq!(ToServer::decode(&out), Ok(message));
});
