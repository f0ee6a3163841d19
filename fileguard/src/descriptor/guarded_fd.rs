//! A descriptor identified by its inode.

use super::closing::close;
use super::retry::{ClosedFdError, is_closed};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The preferred numbers, unless the process has a low limit. They are not higher because the kernel's descriptor table grows with the highest
/// number, and `fork` copies it.
const NUMBERS: Range<u64> = 768..1024;

/// Flags of the files that the library opens; programs rarely combine them.
const MARKS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// A type that owns a descriptor and nothing else, such as `File` or `UdpSocket`.
pub trait Descriptor: AsFd + From<OwnedFd> + Into<OwnedFd> {}

impl<T: AsFd + From<OwnedFd> + Into<OwnedFd>> Descriptor for T {}

/// The identity of a descriptor's file, pipe or socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    dev: u64,
    ino: u64,
    mode: u32,
}

impl Identity {
    pub(crate) fn of(fd: impl AsFd) -> io::Result<Self> {
        let stat = fstat(fd)?;
        Ok(Self { dev: stat.st_dev, ino: stat.st_ino, mode: FileType::from_raw_mode(stat.st_mode).as_raw_mode() })
    }
}

/// A descriptor of the library with a high number. The program may close it at any time, and then use the number itself.
///
/// Access is by [`get`](Self::get), which compares the inode. Dropping the value closes the descriptor only if the inode is still the same. The
/// program may still close the descriptor between the comparison and the use; user space cannot exclude that. The use then fails, because the number
/// is not in use yet: files of the program get low numbers, and files of the library rotate through the high ones.
#[derive(Debug)]
pub struct GuardedFd<T: Descriptor> {
    /// `Some` until the value is dropped.
    held: Option<T>,
    identity: Identity,
}

impl<T: Descriptor> GuardedFd<T> {
    /// Keeps the descriptor of `held`, with a high number if one is free.
    ///
    /// # Errors
    ///
    /// If it has no inode of its own, such as an eventfd, an epoll or an inotify descriptor: it could not be distinguished from a descriptor of the
    /// program.
    pub fn new(held: T) -> io::Result<Self> {
        Self::with_its_number(held)?.high()
    }

    /// Keeps the descriptor of `held` with its present number. For a descriptor that is closed in order to open another one within the limit, which
    /// may be lowered at any time.
    ///
    /// # Errors
    ///
    /// The same as for [`GuardedFd::new`].
    pub fn with_its_number(held: T) -> io::Result<Self> {
        Self::checked(held, OFlags::empty())
    }

    /// Keeps a descriptor opened with these flags, with a high number if one is free.
    pub(super) fn opened(held: T, flags: OFlags) -> io::Result<Self> {
        Self::checked(held, flags & MARKS)?.high()
    }

    /// Compares the flags after reading the inode. They differ if the program has closed the number since it was opened, and has reused it.
    fn checked(held: T, marks: OFlags) -> io::Result<Self> {
        let refused = || io::Error::new(io::ErrorKind::Unsupported, "the descriptor has no inode of its own");
        let closed = || io::Error::other(ClosedFdError(held.as_fd().as_raw_fd()));
        let is_marked = || Ok::<_, io::Error>(marks.is_empty() || fcntl_getfl(&held)?.contains(marks));
        let found = Identity::of(&held).and_then(|of| if is_shared(of) { Err(refused()) } else { Ok(of) });
        match found.and_then(|of| if is_marked()? { Ok(of) } else { Err(closed()) }) {
            Ok(identity) => Ok(Self { held: Some(held), identity }),
            // The number may belong to the program by now.
            Err(error) if is_closed(&error) => {
                std::mem::forget(held);
                Err(error)
            }
            Err(error) => {
                close(held);
                Err(error)
            }
        }
    }

    /// Moves the descriptor to a high number, if one is free.
    fn high(self) -> io::Result<Self> {
        let held = self.get()?;
        let Some(high) = next_number(held.as_fd()) else { return Ok(self) };
        match Identity::of(&high) {
            Ok(found) if found == self.identity => Ok(Self { held: Some(T::from(high)), identity: found }),
            // Meanwhile the program has closed the low number, and reused it for a file of its own.
            Ok(_) => {
                close(high);
                Err(io::Error::other(ClosedFdError(held.as_fd().as_raw_fd())))
            }
            Err(error) => {
                std::mem::forget(high);
                Err(error)
            }
        }
    }

    /// Returns whether the descriptor is still the same.
    pub fn is_open(&self) -> bool {
        self.held.as_ref().is_some_and(|held| Identity::of(held).is_ok_and(|found| found == self.identity))
    }

    /// The owner of the descriptor, for immediate use.
    ///
    /// # Errors
    ///
    /// If the program has closed it.
    pub fn get(&self) -> io::Result<&T> {
        match &self.held {
            Some(held) if self.is_open() => Ok(held),
            held => {
                let number = held.as_ref().map_or(-1, |held| held.as_fd().as_raw_fd());
                Err(io::Error::other(ClosedFdError(number)))
            }
        }
    }

    pub(crate) const fn identity(&self) -> Identity {
        self.identity
    }

    /// The owner without a check: for [`CheckedFd`](crate::CheckedFd), which is created after a check.
    pub(crate) const fn held(&self) -> Option<&T> {
        self.held.as_ref()
    }
}

impl<T: Descriptor> Drop for GuardedFd<T> {
    fn drop(&mut self) {
        let is_open = self.is_open();
        match self.held.take() {
            Some(held) if is_open => close(held),
            // The number may belong to the program by now.
            closed => std::mem::forget(closed),
        }
    }
}

/// Returns whether this is the inode that all eventfds share with other descriptors without a file.
fn is_shared(identity: Identity) -> bool {
    let has_no_type = FileType::from_raw_mode(identity.mode) == FileType::Unknown;
    has_no_type && eventfd(0, EventfdFlags::CLOEXEC).is_ok_and(|fd| Identity::of(&fd).is_ok_and(|of| of == identity))
}

/// Duplicates a descriptor to the next free high number; `None` if there is none. The numbers rotate: if the program closes a descriptor between a
/// thread's comparison and its use, the number does not belong to a file that another thread has just opened.
fn next_number(held: BorrowedFd<'_>) -> Option<OwnedFd> {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    let numbers = numbers();
    // Relaxed: threads that read the same number get different descriptors from the kernel.
    let next = NEXT.load(Ordering::Relaxed);
    // The last eighth is for the case that the numbers from `next` on are in use: the next free one would otherwise enlarge the kernel's table.
    let turns = numbers.start..numbers.end - (numbers.end - numbers.start) / 8;
    let from = if turns.contains(&next) { next } else { numbers.start };
    let high = fcntl_dupfd_cloexec(held, from).or_else(|_| fcntl_dupfd_cloexec(held, numbers.start)).ok()?;
    NEXT.store(high.as_raw_fd() + 1, Ordering::Relaxed);
    Some(high)
}

/// The preferred numbers: 768 to 1,023, or the last quarter of the numbers within the process's limit.
fn numbers() -> Range<i32> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX).min(NUMBERS.end);
    (limit - limit / 4).min(NUMBERS.start) as i32..limit as i32
}

#[cfg(test)]
mod tests {
    use super::super::closing::close_number;
    use super::*;
    use crate::{CheckedFd, ReopenableFd, Waker};
    use rustix::io::fcntl_getfd;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// Simulates a program that closes the descriptor, and reuses its number for `other`.
    fn reuse<T: Descriptor>(kept: &GuardedFd<T>, other: &File) -> File {
        let number = kept.held().expect("it is held").as_fd().as_raw_fd();
        close_number(number).expect("it is open");
        let reused = fcntl_dupfd_cloexec(other, number).expect("it is free");
        assert_eq!(reused.as_raw_fd(), number);
        reused.into()
    }

    #[test]
    fn a_descriptor_of_the_program_is_neither_used_nor_closed() -> io::Result<()> {
        let mut other = tempfile::tempfile()?;
        let kept = GuardedFd::new(tempfile::tempfile()?)?;
        kept.get()?.write_all(b"ours")?;
        assert!(numbers().contains(&kept.get()?.as_raw_fd()));
        let reused = reuse(&kept, &other);
        assert!(!kept.is_open() && kept.get().is_err_and(|error| is_closed(&error)));
        drop(kept);
        fcntl_getfd(&reused)?;
        let mut contents = Vec::new();
        other.read_to_end(&mut contents)?;
        assert_eq!(contents, b"");
        Ok(())
    }

    #[test]
    fn a_number_is_not_used_again_at_once() -> io::Result<()> {
        let file = tempfile::tempfile()?;
        let mut last = next_number(file.as_fd()).expect("a number is free").as_raw_fd();
        let mut wrapped = 0;
        for _ in 0..2 * numbers().len() {
            let number = next_number(file.as_fd()).expect("a number is free").as_raw_fd();
            assert_ne!(number, last);
            assert!(numbers().contains(&number), "{number}");
            wrapped += usize::from(number < last);
            last = number;
        }
        assert!((1..=8).contains(&wrapped), "{wrapped}");
        Ok(())
    }

    /// Dropping one of them as the standard library does would abort a debug build.
    #[test]
    fn descriptors_that_the_program_has_closed_are_dropped_in_silence() -> io::Result<()> {
        let kept = GuardedFd::new(tempfile::tempfile()?)?;
        let opened = CheckedFd::of(tempfile::tempfile()?)?;
        for number in [kept.get()?.as_raw_fd(), opened.as_raw_fd()] {
            close_number(number)?;
        }
        drop((kept, opened));
        // A number that no other test gets.
        let closed = File::from(fcntl_dupfd_cloexec(&tempfile::tempfile()?, 960)?);
        close_number(closed.as_raw_fd())?;
        assert!(GuardedFd::new(closed).is_err_and(|error| is_closed(&error)));
        Ok(())
    }

    #[test]
    fn a_socket_is_told_from_another_one() -> io::Result<()> {
        let (one, other) = UnixStream::pair()?;
        let kept = GuardedFd::new(one)?;
        let reused = reuse(&kept, &File::from(OwnedFd::from(other)));
        assert!(!kept.is_open());
        drop(kept);
        fcntl_getfd(&reused).map(drop).map_err(Into::into)
    }

    #[test]
    fn a_descriptor_without_an_inode_of_its_own_is_refused() -> io::Result<()> {
        let refused = GuardedFd::new(eventfd(0, EventfdFlags::CLOEXEC)?).err().map(|error| error.kind());
        assert_eq!(refused, Some(io::ErrorKind::Unsupported));
        Ok(())
    }

    #[test]
    fn a_closed_file_is_opened_again() -> io::Result<()> {
        let temp = tempfile::tempdir()?;
        let path = temp.path().join("file");
        let flags = OFlags::WRONLY | OFlags::APPEND;
        let kept = ReopenableFd::new(File::options().append(true).create(true).open(&path)?, &path, flags)?;
        (&*kept.get()?).write_all(b"one ")?;
        let number = kept.get()?.as_raw_fd();
        close_number(number)?;
        let own = tempfile::tempfile()?;
        let reused = File::from(fcntl_dupfd_cloexec(&own, number)?);
        (&*kept.get()?).write_all(b"two")?;
        assert_eq!((std::fs::read(&path)?, own.metadata()?.len()), (b"one two".to_vec(), 0));
        std::fs::rename(&path, temp.path().join("other"))?;
        File::create(&path)?;
        kept.get()?;
        kept.close();
        assert_eq!(kept.get().err().map(|error| error.kind()), Some(io::ErrorKind::NotFound));
        drop(reused);
        Ok(())
    }

    /// A sleeping thread notices that the program has closed all descriptors.
    #[test]
    fn closing_the_pipe_wakes_who_sleeps_on_it() -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        let waker = Waker::new()?;
        let source = waker.source()?;
        let written = waker.written();
        let sleeper = std::thread::spawn(move || {
            let mut fds = [PollFd::new(&source, PollFlags::IN)];
            poll(&mut fds, None).map(|_| fds[0].revents())
        });
        close_number(written)?;
        let seen = sleeper.join().map_err(|_| io::Error::other("it panicked"))??;
        assert!(seen.contains(PollFlags::HUP), "{seen:?}");
        assert!(!waker.is_open());
        waker.wake();
        assert!(waker.is_open());
        let source = waker.source()?;
        assert_eq!(poll(&mut [PollFd::new(&source, PollFlags::IN)], None)?, 1);
        waker.clear();
        let zero = rustix::event::Timespec::default();
        assert_eq!(poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(&zero))?, 0);
        Ok(())
    }
}
