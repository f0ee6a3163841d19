//! Files that grow by complete pieces only.

use super::directory::Directory;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use tracepoint_ring::channel::HEADER_SIZE;

/// The space that is reserved behind the last packet, for the empty packet that ends the stream.
const RESERVE: u64 = HEADER_SIZE as u64;

/// The files of a directory, by name. Only one is open at a time, to leave file descriptors to the traced program.
#[derive(Debug, Default)]
pub(super) struct Streams {
    lengths: HashMap<String, Length>,
    open: Option<(String, File)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    /// The length of all complete pieces, in bytes.
    whole: u64,
    /// Whether a part of a failed write may follow them.
    dirty: bool,
}

impl Streams {
    /// Appends `bytes` to the file `name`, all or nothing; the first call creates the file. Behind a piece larger than a packet's
    /// header, space for another header is reserved.
    pub(super) fn append(&mut self, directory: &Directory, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.open {
            Some((open, file)) if open == name => file,
            other => {
                let known = self.lengths.contains_key(name);
                let file = if known { directory.open_file(name)? } else { directory.create_file(name)? };
                self.lengths.entry(name.to_owned()).or_default();
                &mut other.insert((name.to_owned(), file)).1
            }
        };
        let length = self.lengths.entry(name.to_owned()).or_default();
        if length.dirty {
            file.set_len(length.whole)?;
            length.dirty = false;
        }
        make_room(file, length.whole, bytes.len() as u64)?;
        if let Err(error) = file.write_all(bytes) {
            length.dirty = file.set_len(length.whole).is_err();
            return Err(error);
        }
        length.whole += bytes.len() as u64;
        Ok(())
    }
}

impl Streams {
    /// Closes the open file until the next piece.
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Moves all files but `left` to another directory. If one cannot be moved, those before it are moved back.
    pub(super) fn move_to(&mut self, from: &Directory, to: &Directory, left: &str) -> io::Result<()> {
        let names: Vec<_> = self.lengths.keys().filter(|name| *name != left).cloned().collect();
        for (index, name) in names.iter().enumerate() {
            if let Err(error) = from.move_file(name, to) {
                for name in &names[..index] {
                    to.move_file(name, from)?;
                }
                return Err(error);
            }
        }
        // `left` is a different file there.
        self.open = None;
        Ok(())
    }
}

/// Reserves the space for a piece before any of it is written.
fn make_room(file: &File, end: u64, len: u64) -> io::Result<()> {
    let reserve = if len > RESERVE { RESERVE } else { 0 };
    let wanted = len + reserve;
    // A write beyond the limit on file sizes would not just fail: it would send SIGXFSZ to the traced program.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| end + wanted > limit) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if reserve == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, end, wanted) {
        Err(errno @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => Err(errno.into()),
        // Not every file system supports this; then the write itself fails.
        _ => Ok(()),
    }
}
