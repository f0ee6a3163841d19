//! The status codes of a relay's replies.

use crate::DecodeError;

/// A status in a reply.
pub trait Status: Copy + Eq + Sized {
    /// Its number.
    fn number(self) -> u32;

    /// The status with this number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Number`] if there is none.
    fn of(number: u32) -> Result<Self, DecodeError>;
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident($what:literal) { $($(#[$status_doc:meta])* $status:ident = $number:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$status_doc])* $status,)+
        }

        impl Status for $name {
            fn number(self) -> u32 {
                match self {
                    $(Self::$status => $number,)+
                }
            }

            fn of(number: u32) -> Result<Self, DecodeError> {
                match number {
                    $($number => Ok(Self::$status),)+
                    _ => Err(DecodeError::Number { what: $what, number }),
                }
            }
        }
    )+};
}

statuses! {
    /// The answer to [`Request::Attach`](super::Request::Attach). Streams follow only an [`Ok`](Self::Ok).
    AttachStatus("status of ATTACH_SESSION") {
        /// The session is attached.
        Ok = 1,
        /// Another viewer is attached.
        Busy = 2,
        /// There is no such session.
        Unknown = 3,
        /// The session is not live.
        NotLive = 4,
        /// The seek is invalid.
        Seek = 5,
        /// The viewer has not created a session of its own.
        NoSession = 6,
    }

    /// The answer to [`Request::NextIndex`](super::Request::NextIndex).
    IndexStatus("status of GET_NEXT_INDEX") {
        /// The index of a packet. The next request is for the packet after it.
        Ok = 1,
        /// There is no packet yet. It is unknown when the next one begins.
        Retry = 2,
        /// The stream has ended, and all its packets were delivered.
        Hup = 3,
        /// The relay has failed.
        Error = 4,
        /// There is no packet yet, and none will begin before the time in the reply.
        Inactive = 5,
        /// Not used by relays; ends the stream.
        Eof = 6,
    }

    /// The answer to [`Request::Packet`](super::Request::Packet).
    PacketStatus("status of GET_PACKET") {
        /// Bytes follow.
        Ok = 1,
        /// Not yet.
        Retry = 2,
        /// The relay has failed; or, if a flag is set, wants metadata or streams to be fetched first.
        Error = 3,
        /// The stream has ended.
        Eof = 4,
    }

    /// The answer to [`Request::Metadata`](super::Request::Metadata).
    MetadataStatus("status of GET_METADATA") {
        /// Bytes follow, and there may be more.
        Ok = 1,
        /// There is no new metadata.
        Nothing = 2,
        /// The stream has ended, or there is none.
        Error = 3,
    }

    /// The answer to [`Request::NewStreams`](super::Request::NewStreams).
    NewStreamsStatus("status of GET_NEW_STREAMS") {
        /// Records follow, perhaps none.
        Ok = 1,
        /// There is no new stream.
        Nothing = 2,
        /// The relay has failed.
        Error = 3,
        /// The session has ended, and all of it was delivered.
        Hup = 4,
    }
}
