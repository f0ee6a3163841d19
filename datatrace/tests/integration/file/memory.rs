//! A file in memory that records every write, and can run full.

use datatrace::Storage;
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;

#[derive(Clone, Debug)]
pub(crate) enum Write {
    Bytes(u64, Vec<u8>),
    Length(u64),
}

impl Write {
    /// Applies the write to the contents of a file.
    pub(crate) fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Bytes(offset, bytes) => {
                let end = *offset as usize + bytes.len();
                file.resize(file.len().max(end), 0);
                file[*offset as usize..end].copy_from_slice(bytes);
            }
            Self::Length(length) => file.resize(*length as usize, 0),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) bytes: Vec<u8>,
    pub(crate) writes: Vec<Write>,
    /// Number of bytes by which the file may still grow; `None`: no limit.
    pub(crate) room: Option<usize>,
    /// Number of writes that succeed before one is refused; `None`: all.
    pub(crate) succeed: Option<usize>,
}

/// A handle of the file; the test keeps another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(pub(crate) Rc<RefCell<Contents>>);

impl Memory {
    fn write(&self, write: Write) -> io::Result<()> {
        let mut contents = self.0.borrow_mut();
        contents.succeed = match contents.succeed {
            Some(0) => {
                contents.succeed = None;
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            others => others.map(|writes| writes - 1),
        };
        let before = contents.bytes.len();
        let Some(room) = contents.room else {
            write.apply(&mut contents.bytes);
            contents.writes.push(write);
            return Ok(());
        };
        // A full disk accepts the bytes that fit.
        let most = before + room;
        let (part, whole) = match write {
            Write::Bytes(offset, mut bytes) => {
                let length = bytes.len();
                bytes.truncate(most.saturating_sub(offset as usize));
                let whole = bytes.len() == length;
                (Write::Bytes(offset, bytes), whole)
            }
            Write::Length(length) => (Write::Length(length.min(most as u64)), length <= most as u64),
        };
        part.apply(&mut contents.bytes);
        contents.writes.push(part);
        let after = contents.bytes.len();
        contents.room = Some(most - after);
        if whole { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }
}

impl Storage for Memory {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(Write::Bytes(offset, bytes.to_vec()))
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.write(Write::Length(length))
    }

    fn path(&self) -> &Path {
        Path::new("memory")
    }
}
