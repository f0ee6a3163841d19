//! Sinks with one file for each process.

#[cfg_attr(not(target_os = "linux"), path = "file/elsewhere.rs")]
mod system;

use super::OutputError;
use super::names::names;
use super::space::{Allowance, Space, Watch};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use system::{KeptFile, file_size_limit, keep, open_alone};

/// Makes a new text file at `path`, inside it, or next to it, limited by `allowance`.
pub(super) fn text(path: &Path, name: &str, allowance: Arc<Allowance>) -> Result<(BoundedFile, PathBuf), OutputError> {
    for path in names(path, name, "txt") {
        let failed = |action, source| OutputError::File { action, path: path.clone(), source };
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed("make", error)),
            Ok(file) => {
                let file = keep(file, &path).map(|file| BoundedFile::new(file, 0, &path, allowance));
                return file.map(|file| (file, path.clone())).map_err(|error| failed("open", error));
            }
        }
    }
    unreachable!("no directory has that many entries")
}

/// Opens the file at `path` for appending, limited to `most` bytes. If another process is writing to it, for example the parent of this
/// one, opens a file next to it with this process's name.
pub fn shared_text(path: &Path, name: &str, most: u64) -> Result<BoundedFile, OutputError> {
    for path in names(path, name, "txt") {
        let failed = |source| OutputError::File { action: "open", path: path.clone(), source };
        let Some((file, written)) = open_alone(&path).map_err(failed)? else { continue };
        return Ok(BoundedFile::new(file, written, &path, Allowance::of(most)));
    }
    unreachable!("no directory has that many entries")
}

/// A file that refuses writes beyond its limits.
#[derive(Debug)]
pub struct BoundedFile {
    file: KeptFile,
    written: u64,
    space: Space,
}

impl BoundedFile {
    fn new(file: KeptFile, written: u64, path: &Path, allowance: Arc<Allowance>) -> Self {
        Self { file, written, space: Space::new(path, allowance) }
    }

    pub(super) fn watch(&self) -> Arc<Watch> {
        self.space.watch()
    }
}

impl Write for BoundedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len() as u64;
        self.space.check(self.written, len)?;
        // Exceeding the file-size limit would send SIGXFSZ to the traced program.
        if self.written + len > file_size_limit() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let taken =
            fileguard::retried(|| (&*self.file.get()?).write(bytes)).inspect_err(|error| self.space.fail(error))?;
        self.written += taken as u64;
        self.space.add(taken as u64);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        // A file has no buffer in this process.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::OFlags;
    use std::fs;
    use std::os::unix::fs::OpenOptionsExt;

    /// A directory in memory, where a twentieth of the file system is free.
    fn test_dir() -> io::Result<tempfile::TempDir> {
        tempfile::tempdir_in("/dev/shm")
    }

    #[test]
    fn a_shared_file_is_continued_and_limited() -> Result<(), Box<dyn std::error::Error>> {
        let dir = test_dir()?;
        let path = dir.path().join("lines.txt");
        fs::write(&path, "before\n")?;
        let mut first = shared_text(&path, "server-7-1", 12)?;
        // Like a forked child that inherited the environment variable.
        let mut second = shared_text(&path, "server-8-1", 12)?;
        first.write_all(b"one\n")?;
        second.write_all(b"two\n")?;
        assert_eq!(fs::read_to_string(&path)?, "before\none\n");
        assert_eq!(fs::read_to_string(dir.path().join("lines-server-8-1.txt"))?, "two\n");
        let error = first.write_all(b"three\n").err().ok_or("the limit was not enforced")?;
        assert!(error.kind() == io::ErrorKind::QuotaExceeded && error.to_string().contains("12 bytes"), "{error}");
        drop(first);
        // A later process continues the file, within its own limit.
        let mut third = shared_text(&path, "server-9-1", 16)?;
        third.write_all(b"four\n")?;
        assert!(third.write_all(b"!").is_err());
        assert_eq!(fs::read_to_string(&path)?, "before\none\nfour\n");
        Ok(())
    }

    /// Neither opening a FIFO without a reader nor writing to a full one blocks.
    #[test]
    fn a_fifo_does_not_block() -> Result<(), Box<dyn std::error::Error>> {
        let dir = test_dir()?;
        let path = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)?;
        assert!(shared_text(&path, "a", 1 << 20).is_err_and(|error| error.to_string().contains("pipe")));
        let _reader = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&path)?;
        let mut file = shared_text(&path, "a", 1 << 20)?;
        let error = file.write_all(&vec![b'x'; 1 << 18]).err().ok_or("the write did not fail")?;
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        Ok(())
    }

    #[test]
    fn the_file_of_one_process_is_created_anew() -> Result<(), Box<dyn std::error::Error>> {
        let dir = test_dir()?;
        let path = dir.path().join("x.txt");
        let (mut file, first) = text(&path, "server-7-1", Allowance::of(100))?;
        assert_eq!(
            (&first, text(&path, "server-7-1", Allowance::of(100))?.1),
            (&path, dir.path().join("x-server-7-1.txt"))
        );
        assert_eq!(text(dir.path(), "server-7-1", Allowance::of(100))?.1, dir.path().join("server-7-1.txt"));
        file.write_all(b"all")?;
        assert_eq!(fs::read(&first)?, b"all");
        assert!(
            text(&dir.path().join("nowhere/x"), "a", Allowance::of(1))
                .is_err_and(|error| error.to_string().contains("nowhere/x"))
        );
        Ok(())
    }
}
