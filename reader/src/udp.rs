//! The UDP trace server's protocol: `docs/format-udp.md`.

pub mod wire;
