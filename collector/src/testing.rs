//! Messages of senders for the tests of several modules.

use tracepoint_wire::stream::{Hello, VERSION};

/// The HELLO of a process in the session `shop`.
pub(crate) const HELLO: Hello<'static> = Hello {
    version: VERSION as u32,
    udp: false,
    key: [1; 16],
    trace: [2; 16],
    clock: [3; 16],
    nonce: [4; 32],
    sync_interval: 100,
    mtu: 1400,
    resend_buffer: 0,
    host: "host",
    session: "shop",
    process: "till-7-1",
};
