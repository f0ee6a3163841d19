//! The trace object (the original's `dt`): a name, a file, a buffer, postambles and a close function.

use crate::entry::{Entry, numbered};
use crate::error::Error;
use crate::header::Header;
use crate::lock::{Guard, Lock};
use crate::registry::Registry;
use crate::storage::FileStorage;
use crate::writer::DtWriter;
use parking_lot::Mutex;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::thread;

/// The open trace objects of the process.
pub(crate) static OBJECTS: Registry<TraceObject> = Registry::new();

/// A trace object, the original's `dt`: entries go into its circular buffer, full buffers into its circular file.
///
/// Threads may share it: each call holds the lock while it copies, and [`lock`](Self::lock) holds it for many calls. A thread that waits
/// while another one holds the lock for long, or writes a buffer, continues up to 1 ms after the release. The object is closed by
/// [`close`](Self::close), by [`close_all`](crate::close_all), or when its last `Arc` is dropped. [`keep`](Self::keep) keeps it open
/// without an `Arc`.
///
/// A process that forks must trace on one side of the fork only. In the child, closing and dropping an object of the parent neither writes nor
/// calls close functions: the buffer belongs to the parent. A signal handler must not use an object that its thread may be using or
/// [holding](Self::lock): it would deadlock.
pub struct TraceObject {
    id: u64,
    name: Option<String>,
    instance: Option<String>,
    path: PathBuf,
    /// The process that created it.
    process: u32,
    writer: Lock<Option<DtWriter<FileStorage>>>,
    closing: Mutex<CloseState>,
}

/// The close function. `begun` is set once closing has started.
#[derive(Default)]
struct CloseState {
    begun: bool,
    function: Option<CloseFunction>,
}

type CloseFunction = Box<dyn FnOnce(&TraceObject) + Send>;

impl TraceObject {
    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name of its instance, if it has one.
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the object for many calls: calls through the guard take no lock. Other threads wait. A call on the object itself by the thread
    /// that holds the guard deadlocks.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn lock(&self) -> Result<ObjectGuard<'_>, Error> {
        let writer = self.writer.lock();
        if writer.is_some() { Ok(ObjectGuard(writer)) } else { Err(self.closed()) }
    }

    /// Traces an entry of scalars, made by [`pack!`](crate::pack). The original's `dtTrace`*n*.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`]; the errors of [`DtWriter::trace`].
    #[inline]
    pub fn trace<E: Entry>(&self, entry: E) -> Result<(), Error> {
        match self.writer.lock().as_mut() {
            Some(writer) => writer.trace(entry),
            None => Err(self.closed()),
        }
    }

    numbered!(self, [&self]);

    /// Traces bytes as one entry; does nothing if there are none. The original's `dtTraceBuf`.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`]; the errors of [`DtWriter::trace_buf`].
    #[inline]
    pub fn trace_buf(&self, entry: &[u8]) -> Result<(), Error> {
        match self.writer.lock().as_mut() {
            Some(writer) => writer.trace_buf(entry),
            None => Err(self.closed()),
        }
    }

    /// Flushes the buffer, and with `postambles` also the postambles. The original's `dtFlushTraceObj`.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`]; the errors of [`DtWriter::flush`].
    pub fn flush(&self, postambles: bool) -> Result<(), Error> {
        self.lock()?.flush(postambles)
    }

    /// Adds `postamble` at the end of the list of postambles. The original's `dtAppendPostAmble`; see
    /// [`DtWriter::append_postamble`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn append_postamble(&self, postamble: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.lock()?.append_postamble(postamble);
        Ok(())
    }

    /// Adds `postamble` at the beginning of the list of postambles. The original's `dtInsertPostAmble`; see
    /// [`DtWriter::insert_postamble`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn insert_postamble(&self, postamble: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.lock()?.insert_postamble(postamble);
        Ok(())
    }

    /// The header currently in the file.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`].
    pub fn header(&self) -> Result<Header, Error> {
        Ok(*self.lock()?.header())
    }

    /// Registers a `function` that is called with the object and `argument` as the first step of closing the object: it may still trace, and
    /// add postambles. Replaces an earlier one. The original's `dtRegisterCloseFunc`.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], also while the object is being closed.
    pub fn register_close_func<A: Send + 'static>(
        &self,
        function: impl FnOnce(&Self, A) + Send + 'static,
        argument: A,
    ) -> Result<(), Error> {
        let mut closing = self.closing.lock();
        if closing.begun {
            return Err(self.closed());
        }
        closing.function = Some(Box::new(move |object| function(object, argument)));
        Ok(())
    }

    /// Keeps the object open when its last `Arc` is dropped, until it is closed. A program that keeps objects calls
    /// [`close_all`](crate::close_all) at its end.
    pub fn keep(self: &Arc<Self>) {
        OBJECTS.keep(self.id, self);
    }

    /// Closes the object: calls its close function, removes it from the list of open objects, flushes and frees buffer and postambles. The
    /// original's `dtClose`. A panic of the close function is resumed at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if it is closed already, is being closed by another thread or its own close function, or belongs to the parent of
    /// this forked process: it is then freed here, and the file is not touched. [`Error::Io`] if not everything could be written: the object
    /// is closed nevertheless, and earlier writes are in the file.
    pub fn close(&self) -> Result<(), Error> {
        if self.process != process::id() {
            OBJECTS.remove(self.id);
            // If a thread of the parent holds the lock, the memory stays allocated.
            if let Some(mut writer) = self.writer.try_lock() {
                *writer = None;
            }
            return Err(self.closed());
        }
        let function = {
            let mut closing = self.closing.lock();
            if closing.begun {
                return Err(self.closed());
            }
            closing.begun = true;
            closing.function.take()
        };
        let called = catch_unwind(AssertUnwindSafe(|| function.map(|function| function(self))));
        OBJECTS.remove(self.id);
        let writer = self.writer.lock().take();
        let outcome = writer.map_or(Ok(()), |mut writer| writer.flush(true));
        match called {
            Err(panic) if !thread::panicking() => resume_unwind(panic),
            _ => outcome,
        }
    }

    /// Creates the object of an open file.
    pub(crate) fn open(
        id: u64,
        name: Option<String>,
        instance: Option<String>,
        path: PathBuf,
        writer: DtWriter<FileStorage>,
    ) -> Self {
        Self {
            id,
            name,
            instance,
            path,
            process: process::id(),
            writer: Lock::new(Some(writer)),
            closing: Mutex::default(),
        }
    }

    #[cold]
    fn closed(&self) -> Error {
        Error::Closed(self.path.clone())
    }
}

impl Drop for TraceObject {
    fn drop(&mut self) {
        // Errors are lost here; a program that needs them must flush before.
        let _ = self.close();
    }
}

impl fmt::Debug for TraceObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceObject").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The lock on a trace object.
#[derive(Debug)]
pub struct ObjectGuard<'a>(Guard<'a, Option<DtWriter<FileStorage>>>);

impl Deref for ObjectGuard<'_> {
    type Target = DtWriter<FileStorage>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        let Some(writer) = &*self.0 else { unreachable!("{STAYS_OPEN}") };
        writer
    }
}

impl DerefMut for ObjectGuard<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        let Some(writer) = &mut *self.0 else { unreachable!("{STAYS_OPEN}") };
        writer
    }
}

const STAYS_OPEN: &str = "closing the object waits for the guard";
