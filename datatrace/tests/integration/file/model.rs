//! The expected contents of a dt file, kept in plain lists.

use crate::file::independent::Decoded;
use datatrace::Version;
use std::collections::VecDeque;

/// One call.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Trace(Vec<u8>),
    Flush(bool),
    EndSlot,
    Append(Vec<u8>),
    Insert(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) version: Version,
    pub(crate) logsize: usize,
    pub(crate) filesize: usize,
    pub(crate) full_size: bool,
    /// The entries' bytes of all slots finished so far.
    pub(crate) finished: Vec<Vec<u8>>,
    /// The buffer, and the number of its bytes that have been flushed.
    pub(crate) buffer: Vec<u8>,
    pub(crate) flushed: usize,
    pub(crate) list: VecDeque<Vec<u8>>,
    /// The postambles that are in the file.
    pub(crate) posted: Option<Vec<u8>>,
}

impl Model {
    pub(crate) fn new(version: Version, logsize: usize, filesize: usize, full_size: bool) -> Self {
        Self {
            version,
            logsize,
            filesize,
            full_size,
            finished: Vec::new(),
            buffer: Vec::new(),
            flushed: 0,
            list: VecDeque::new(),
            posted: None,
        }
    }

    /// Bytes of a slot available for entries.
    pub(crate) fn capacity(&self) -> usize {
        self.logsize - if self.version == Version::Framed { 8 } else { 0 }
    }

    /// Current number of slots in the file.
    pub(crate) fn slots(&self) -> usize {
        let written = self.finished.len() + usize::from(self.flushed > 0);
        if self.full_size { self.filesize } else { written.min(self.filesize) }
    }

    /// Executes a call, and returns whether it is accepted.
    pub(crate) fn run(&mut self, operation: &Operation) -> bool {
        let accepted = self.run_alone(operation);
        // Only a flush with postambles writes them; they then stay after any added slot.
        if matches!(operation, Operation::Flush(true)) && !self.list.is_empty() {
            self.post();
        }
        accepted
    }

    fn run_alone(&mut self, operation: &Operation) -> bool {
        match operation {
            Operation::Trace(entry) if entry.len() > self.capacity() => return false,
            Operation::Trace(entry) => match self.version {
                Version::ByteStream => {
                    for byte in entry {
                        self.buffer.push(*byte);
                        self.finish_if(self.buffer.len() == self.capacity());
                    }
                }
                Version::Framed => {
                    self.finish_if(self.buffer.len() + entry.len() > self.capacity());
                    self.buffer.extend(entry);
                    self.finish_if(self.buffer.len() == self.capacity());
                }
            },
            Operation::Flush(_) => self.flushed = self.buffer.len(),
            Operation::EndSlot if self.version == Version::ByteStream => return false,
            Operation::EndSlot => self.finish_if(!self.buffer.is_empty()),
            Operation::Append(postamble) => self.list.push_back(postamble.clone()),
            Operation::Insert(postamble) => self.list.push_front(postamble.clone()),
        }
        true
    }

    fn finish_if(&mut self, full: bool) {
        if full {
            self.finished.push(std::mem::take(&mut self.buffer));
            self.flushed = 0;
        }
    }

    fn post(&mut self) {
        self.posted = Some(self.list.iter().flatten().copied().collect());
    }

    /// The current contents of the file.
    pub(crate) fn decoded(&self) -> Decoded {
        let frame = self.logsize - self.capacity();
        let open = (self.flushed > 0).then(|| self.buffer[..self.flushed].to_vec());
        let written: Vec<_> = self.finished.iter().cloned().chain(open).collect();
        let number = |number: usize| i32::try_from(number).unwrap();
        let newest = |last: &Vec<u8>| (number((written.len() - 1) % self.filesize), number(last.len() + frame));
        let newest = written.last().map_or((-1, 0), newest);
        let header = [self.version.number(), number(self.logsize), number(self.slots()), newest.0, newest.1];
        let kept = written.iter().enumerate().skip(written.len().saturating_sub(self.filesize));
        Decoded {
            header,
            slots: kept.map(|(number, bytes)| (number % self.filesize, bytes.clone())).collect(),
            torn: Vec::new(),
            postambles: self.posted.clone().unwrap_or_default(),
        }
    }
}
