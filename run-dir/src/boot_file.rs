//! Small files in the run directory with numbers that are valid until the next boot and shared by all processes.
//!
//! A file is text: its name and version, the boot id, and one number per line. It is read and written under the lock of a separate lock
//! file, and replaced atomically. A damaged file, or one of another boot, is treated as missing.

use crate::lock::Lock;
use crate::private_dir::PrivateDir;
use crate::rundir::RunDir;
use rustix::fs::OFlags;
use std::io;
use std::time::Duration;
use tracepoint_reader::account::uuid_text;
use tracepoint_reader::internal::boot_id;

/// How long to wait for the lock. A stopped process that holds it must not stop this one.
const TIMEOUT: Duration = Duration::from_millis(100);

/// A file with `N` numbers.
#[derive(Debug)]
pub(crate) struct BootFile<const N: usize> {
    /// File name.
    pub(crate) name: &'static str,
    /// Names of the numbers, in order.
    pub(crate) numbers: [&'static str; N],
}

impl<const N: usize> BootFile<N> {
    /// Locks the file, which need not exist yet. Waits for other processes up to a tenth of a second.
    pub(crate) fn lock<'a>(&'a self, run_dir: &'a RunDir) -> io::Result<BootFileLock<'a, N>> {
        self.lock_within(run_dir, TIMEOUT)
    }

    /// Like `lock`, without waiting.
    pub(crate) fn try_lock<'a>(&'a self, run_dir: &'a RunDir) -> io::Result<BootFileLock<'a, N>> {
        self.lock_within(run_dir, Duration::ZERO)
    }

    fn lock_within<'a>(&'a self, run_dir: &'a RunDir, timeout: Duration) -> io::Result<BootFileLock<'a, N>> {
        let boot = boot_id().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the machine has no boot id"))?;
        let dir = run_dir.dir();
        let name = format!("{}.lock", self.name);
        let lock = Lock::wait_for(dir.make_or_open(&name, OFlags::WRONLY)?, timeout, &format!("the lock {name}"))?;
        Ok(BootFileLock { file: self, dir, boot, _lock: lock })
    }
}

/// A locked file. Without the lock, two processes that find no file could each write one, and each use its own numbers.
#[derive(Debug)]
pub(crate) struct BootFileLock<'a, const N: usize> {
    file: &'a BootFile<N>,
    dir: &'a PrivateDir,
    boot: [u8; 16],
    _lock: Lock,
}

impl<const N: usize> BootFileLock<'_, N> {
    /// The numbers; `None` if the file is missing, damaged or of another boot, and must be written.
    pub(crate) fn read(&self) -> Option<[i128; N]> {
        let text = String::from_utf8(self.dir.read_file(self.file.name, 1024).ok()?).ok()?;
        let rest = text.strip_prefix(&self.head())?;
        let mut lines = rest.lines();
        let mut numbers = [0; N];
        for (number, name) in numbers.iter_mut().zip(self.file.numbers) {
            *number = lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()?;
        }
        (rest.ends_with('\n') && lines.next().is_none()).then_some(numbers)
    }

    /// Replaces the file atomically.
    pub(crate) fn write(&self, numbers: [i128; N]) -> io::Result<()> {
        let lines = self.file.numbers.iter().zip(numbers).map(|(name, number)| format!("{name} {number}\n"));
        let text = self.head() + &lines.collect::<String>();
        self.dir.replace(self.file.name, text.as_bytes())
    }

    fn head(&self) -> String {
        format!("tracepoint-{} 1\nboot {}\n", self.file.name, uuid_text(self.boot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: BootFile<2> = BootFile { name: "numbers", numbers: ["one", "other"] };

    #[test]
    fn a_damaged_file_or_one_of_another_boot_counts_as_missing() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let boot = uuid_text(boot_id().ok_or("no boot id")?);
        let locked = FILE.lock(&dir)?;
        assert_eq!(locked.read(), None);
        locked.write([5, -6])?;
        assert_eq!(locked.read(), Some([5, -6]));
        let path = dir.path().join("numbers");
        let good = format!("tracepoint-numbers 1\nboot {boot}\none 5\nother -6\n");
        assert_eq!(std::fs::read_to_string(&path)?, good);
        let texts = [
            String::new(),
            "\0".repeat(4096),
            good.replace(&boot, &uuid_text([0; 16])),
            good.replace(" 1\n", " 2\n"),
            good.replace("-6", "many"),
            good.replace("one 5\n", ""),
            good.trim_end().to_owned(),
            good.clone() + "third 7\n",
        ];
        for text in texts {
            std::fs::write(&path, &text)?;
            assert_eq!(locked.read(), None, "{text:?}");
        }
        locked.write([7, 8])?;
        assert_eq!(locked.read(), Some([7, 8]));
        Ok(())
    }

    #[test]
    fn the_lock_is_exclusive() -> Result<(), Box<dyn std::error::Error>> {
        let temp = tempfile::tempdir()?;
        let dir = RunDir::at(&temp.path().join("run"))?;
        let held = FILE.lock(&dir)?;
        let refused = FILE.try_lock(&dir).err().ok_or("locked twice")?;
        assert_eq!(refused.to_string(), "another process holds the lock numbers.lock for too long");
        drop(held);
        assert!(FILE.try_lock(&dir).is_ok());
        Ok(())
    }
}
