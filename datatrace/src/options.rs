//! How a trace object is made: its names, its place in the list, its file.

use crate::error::Error;
use crate::naming;
use crate::object::{OBJECTS, TraceObject};
use crate::storage::FileStorage;
use crate::writer::{DtWriter, Layout};
use std::path::PathBuf;
use std::sync::Arc;

/// How to make a trace object that is more than a name and two sizes.
#[derive(Clone, Debug)]
#[must_use]
pub struct TraceOptions {
    layout: Layout,
    instance: Option<String>,
    directory: PathBuf,
    positional: bool,
}

impl TraceOptions {
    /// An object of this layout, whose file is in the current directory.
    pub fn new(layout: Layout) -> Self {
        Self { layout, instance: None, directory: PathBuf::from("."), positional: false }
    }

    /// Several objects of one name are told apart by their instance: the file is `NAME_INSTANCE.dt`.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Where the file goes. The directory must exist.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// All writes are positional: the header is not stored through a [mapping](FileStorage::map_header), and no signal handler is installed
    /// for it. Files with small buffers are written at 0.6 to 0.8 of the rate.
    pub fn positional(mut self) -> Self {
        self.positional = true;
        self
    }

    /// Makes the object `name`, and its file `NAME.dt` or `NAME_INSTANCE.dt`, at the end of the list. The original's
    /// `dtCreateTraceObj`. An older file of the name is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::Duplicate`], [`Error::InUse`] for names; those of [`DtWriter::create`].
    pub fn create(self, name: &str) -> Result<Arc<TraceObject>, Error> {
        let file = naming::file_name(name, self.instance.as_deref())?;
        let id = OBJECTS.reserve(Some((name, self.instance.as_deref())))?;
        let path = self.directory.join(file);
        self.make(id, Some(name.to_owned()), path, true)
    }

    /// Makes an object without a name, which only the list finds. Its file is `unnamed-PID-N.dt` (`unnamed-PID-N_INSTANCE.dt`),
    /// with the first N from 0 of which there is no file yet: nothing is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Name`] for the instance's name; those of [`DtWriter::create`].
    pub fn create_unnamed(self) -> Result<Arc<TraceObject>, Error> {
        let process = std::process::id();
        for number in 0u64.. {
            let file = naming::file_name(&format!("unnamed-{process}-{number}"), self.instance.as_deref())?;
            let path = self.directory.join(file);
            // Somebody may make the file between this and the next step, which sees that too.
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match self.clone().make(OBJECTS.reserve(None)?, None, path, false) {
                Err(Error::Exists { .. } | Error::InUse { .. }) => {}
                outcome => return outcome,
            }
        }
        unreachable!("a directory does not hold 2^64 files")
    }

    fn make(self, id: u64, name: Option<String>, path: PathBuf, replace: bool) -> Result<Arc<TraceObject>, Error> {
        let made = FileStorage::begin(&path).and_then(|storage| {
            let storage = if self.positional { storage } else { storage.map_header() };
            let mut writer = DtWriter::create(storage, self.layout)?;
            writer.publish(replace)?;
            Ok(writer)
        });
        let writer = made.inspect_err(|_| OBJECTS.remove(id))?;
        let object = Arc::new(TraceObject::open(id, name, self.instance, path, writer));
        OBJECTS.enter(id, &object);
        Ok(object)
    }
}

impl TraceObject {
    /// Creates a trace object whose file is a byte stream in the current directory: a buffer of `logsize` bytes, a file of at most
    /// `filesize` buffers. The original's `dtCreateTraceObj`. [`TraceOptions`] has further choices.
    ///
    /// # Errors
    ///
    /// Those of [`TraceOptions::create`].
    pub fn create(name: &str, instance: Option<&str>, logsize: u32, filesize: u32) -> Result<Arc<Self>, Error> {
        let options = TraceOptions::new(Layout::new(logsize, filesize));
        match instance {
            Some(instance) => options.instance(instance).create(name),
            None => options.create(name),
        }
    }
}
