//! The Data-Trace library: circular trace files with postambles.
//!
//! A program writes typed entries into a [`TraceObject`]. The object has a buffer, and a file with space for a limited number of buffers. Both are
//! circular: the file holds the newest entries and never exceeds its size. Postambles are arbitrary bytes that belong to the trace, stored at the end
//! of the file. Flushed entries survive `kill -9` at any instant. The crate does not depend on tracepoints and can be used alone.
//!
//! ```no_run
//! use datatrace::{DtReader, TraceObject, close_all};
//!
//! let ip = TraceObject::create("ip", Some("host1"), 10_000, 3)?; // ip_host1.dt: 3 buffers of 10,000 bytes
//! ip.register_close_func(|ip, reason: &str| drop(ip.append_postamble(reason)), "end of the run")?;
//! ip.trace3(17i32, 1500i32, 0x0A00_0001i64)?; // one entry, 16 bytes
//! ip.trace_buf(b"raw bytes")?;
//! ip.flush(false)?;
//! close_all()?; // at the end of the program
//!
//! let file = DtReader::open("ip_host1.dt".as_ref())?;
//! for slot in file.slots() {
//!     println!("{:?}", slot?.bytes()?);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The original's calls
//!
//! | original | here |
//! |---|---|
//! | `dtCreateTraceObj` | [`TraceObject::create`], [`TraceOptions::create`], [`TraceOptions::create_unnamed`] |
//! | `dtTrace1` … `dtTrace`*n* | [`TraceObject::trace1`] … [`TraceObject::trace8`], [`trace!`] for any number |
//! | `dtTraceBuf` | [`TraceObject::trace_buf`] |
//! | `dtFlushTraceObj` | [`TraceObject::flush`] |
//! | `dtRegisterCloseFunc` | [`TraceObject::register_close_func`] |
//! | `dtClose`, `dtCloseAll` | [`TraceObject::close`] or dropping the object, [`close_all`] |
//! | `dtAppendPostAmble`, `dtInsertPostAmble` | [`TraceObject::append_postamble`], [`TraceObject::insert_postamble`] |
//! | `dtPostAmbleLocation` | [`Header::postamble_location`] |
//! | `dtGetTraceObj`, `dtGetTopTraceObj` | [`get_trace_object`], [`top_trace_object`]; [`trace_objects`] for all |
//! | `dtLoadXObjRomOpts` | [`load_options`] |
//! | `dt`, `dthdr`, `dtpost` | [`TraceObject`], [`Header`], bytes |
//!
//! `docs/format-dt.md` specifies the bytes of a file, and the order of writes.
#![deny(unsafe_code)]

mod buffer;
mod entry;
mod error;
mod format;
mod header;
mod lock;
mod lookup;
mod naming;
mod object;
mod options;
mod postambles;
pub mod read;
mod registry;
mod replaceable;
pub mod romfile;
mod slots;
mod storage;
mod tagged;
mod writer;

pub use entry::{Entry, Scalar};
pub use error::{CloseAllError, Error};
pub use format::{FORMAT_TAG, Field, FieldValue, Format, FormatError};
pub use header::{FRAME_SIZE, HEADER_SIZE, Header, HeaderError, LastBuffer, Version};
pub use lookup::{close_all, get_trace_object, get_trace_object_instance, top_trace_object, trace_objects};
pub use object::{ObjectGuard, TraceObject};
pub use options::TraceOptions;
pub use read::{DtReader, EntryBytes, ReadError, Slot, SlotPlace};
pub use romfile::{load_options, load_options_from};
pub use storage::{FileStorage, Storage};
pub use tagged::{MAX_TAGGED, TAGGED_HEAD, TAGGED_MAGIC, TaggedPostamble, tagged};
pub use writer::{DtWriter, Layout, MAX_FILE, MAX_LOGSIZE};
