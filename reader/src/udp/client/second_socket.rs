//! The port of messages that the original server sends from a second, unbound socket.
//!
//! Any program on the server's machine can send from a port other than the server's. Such messages are therefore accepted only in the legacy
//! layout, only from one port, and only until the server's own port has sent a message.

use tracepoint_wire::udp::FromServer;

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum SecondSocket {
    /// No port has sent a message.
    #[default]
    Unknown,
    /// This port was the first.
    Port(u16),
    /// The server sends from its own port.
    Unused,
}

impl SecondSocket {
    /// The server's own port has sent a message.
    pub(super) fn close(&mut self) {
        *self = Self::Unused;
    }

    /// True if a message from another port was accepted.
    pub(super) const fn is_used(self) -> bool {
        matches!(self, Self::Port(_))
    }

    /// True if a message from this port is accepted.
    pub(super) fn takes(&mut self, port: u16, message: &FromServer<'_>) -> bool {
        match self {
            _ if message.session.is_some() => false,
            Self::Unknown => {
                *self = Self::Port(port);
                true
            }
            Self::Port(first) => *first == port,
            Self::Unused => false,
        }
    }
}
