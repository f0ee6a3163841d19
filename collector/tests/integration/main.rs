//! A collector with sockets: stock LTTng senders and viewers, senders made from the protocol's tables, and hostile peers.
#![forbid(unsafe_code)]

#[path = "../../../tests/support/lttng.rs"]
mod lttng;
#[path = "../../../tests/support/skip.rs"]
mod skip;

mod bad_input;
mod hostile;
mod hostile_stream;
mod old_chunks;
mod overload;
mod restart;
mod running;
mod sender;
mod shared_key;
mod shares;
mod stock_lttng;
mod stream_sender;
mod streamed;
mod viewers;
