//! The call stack of the calling thread, found by frame pointers.
//!
//! In a function with a frame pointer, the register points to two words on the stack: the caller's frame pointer, and the return address. In a
//! program built without frame pointers (`-C force-frame-pointers=yes` enables them), the register can hold any value. Therefore only the
//! thread's original stack is read, whose bounds are looked up once. While the thread runs on another stack (of a signal handler, or of a
//! coroutine), the call stack is empty.

use std::ops::Range;

/// Maximum number of callers in a record.
pub(super) const MAX_DEPTH: usize = 64;

/// Stores the callers of the function whose stack pointer was `site`, innermost first, and returns their number. With 0, stores the callers of the
/// calling function.
#[inline(always)]
pub(super) fn walk(site: usize, callers: &mut [u64]) -> usize {
    let (here, frame) = registers();
    let stack = bounds::of_this_thread();
    if !stack.contains(&here) {
        return 0;
    }
    // SAFETY: the stack is mapped from the stack pointer to its end, because the thread runs on it.
    follow(frame, site, here..stack.end, callers, |at| unsafe { (at as *const usize).read_volatile() })
}

/// Follows the frame pointers inside `stack`; `read` returns its words. Return addresses below `site` are omitted: they are in functions of
/// the tracepoint, called by the function whose stack pointer was `site`.
fn follow(frame: usize, site: usize, stack: Range<usize>, callers: &mut [u64], read: impl Fn(usize) -> usize) -> usize {
    const WORD: usize = size_of::<usize>();
    let (mut frame, mut lowest, mut depth) = (frame, stack.start, 0);
    while depth < callers.len() {
        let fits = frame >= lowest
            && frame.is_multiple_of(WORD)
            && stack.end.checked_sub(2 * WORD).is_some_and(|last| frame <= last);
        if !fits {
            return depth;
        }
        let back = read(frame + WORD);
        if back == 0 {
            return depth;
        }
        // If a function does not have a frame yet, or no longer, because it ends with a jump to the next one, only its return address is there.
        if frame + WORD >= site {
            callers[depth] = back as u64;
            depth += 1;
        }
        // Frames of callers have higher addresses, so the loop ends.
        lowest = frame + 2 * WORD;
        frame = read(frame);
    }
    depth
}

#[cfg(all(linux_kernel, target_arch = "x86_64"))]
#[inline(always)]
fn registers() -> (usize, usize) {
    let (stack, frame): (usize, usize);
    // SAFETY: copies two registers.
    unsafe {
        std::arch::asm!("mov {}, rsp", "mov {}, rbp", out(reg) stack, out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    (stack, frame)
}

#[cfg(all(linux_kernel, target_arch = "aarch64"))]
#[inline(always)]
fn registers() -> (usize, usize) {
    let (stack, frame): (usize, usize);
    // SAFETY: copies two registers.
    unsafe {
        std::arch::asm!("mov {}, sp", "mov {}, x29", out(reg) stack, out(reg) frame, options(nomem, nostack, preserves_flags));
    }
    (stack, frame)
}

#[cfg(not(all(linux_kernel, any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn registers() -> (usize, usize) {
    (0, 0)
}

#[cfg(linux_kernel)]
mod bounds {
    use crate::errno::keeping_errno;
    use std::ops::Range;
    use std::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

    /// The maximum assumed size of the main thread's stack: the kernel places no other mapping this close below its end.
    const MAIN: usize = 128 << 20;

    /// The size of a read of the list of mappings: the kernel returns at most a page of 4 KiB at once.
    const BUFFER: usize = 4 << 10;

    /// Value of `END`: not looked up yet.
    const UNKNOWN: usize = 0;

    thread_local! {
        // Like `CURRENT` in `thread/slot.rs`: without a destructor, and atomic because handlers on the thread access it.
        static START: AtomicUsize = const { AtomicUsize::new(0) };
        static END: AtomicUsize = const { AtomicUsize::new(UNKNOWN) };
    }

    /// The bounds of the calling thread's original stack, looked up at the first call. Empty if they cannot be found.
    pub(super) fn of_this_thread() -> Range<usize> {
        if END.with(|end| end.load(Ordering::Relaxed)) == UNKNOWN {
            // Remember a failure as an empty range: another attempt would fail as well.
            let found = keeping_errno(find).unwrap_or(1..1);
            START.with(|start| start.store(found.start, Ordering::Relaxed));
            // X1: pairs with the load of END. A handler that runs in between looks the bounds up itself.
            compiler_fence(Ordering::Release);
            END.with(|end| end.store(found.end, Ordering::Relaxed));
        }
        START.with(|start| start.load(Ordering::Relaxed))..END.with(|end| end.load(Ordering::Relaxed))
    }

    /// Finds the thread's stack in the list of mappings: the kernel names the main thread's stack; the stack of another thread contains the C
    /// library's thread descriptor.
    fn find() -> Option<Range<usize>> {
        // In glibc, musl and bionic the value is the address of the thread descriptor, which is at the end of the thread's stack, except for
        // the main thread.
        // SAFETY: takes no arguments.
        let thread = unsafe { libc::pthread_self() } as usize;
        // SAFETY: both take no arguments.
        let is_main = unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) };
        let (mapping, _) =
            look_up(|mapping, named_stack| if is_main { named_stack } else { mapping.contains(&thread) })?;
        Some(if is_main { mapping.end.saturating_sub(MAIN)..mapping.end } else { mapping.start..thread })
    }

    /// The first mapping that `wanted` accepts.
    fn look_up(wanted: impl Fn(&Range<usize>, bool) -> bool) -> Option<(Range<usize>, bool)> {
        // Not on the stack, which may be the small one of a signal handler.
        // SAFETY: a new anonymous mapping at an address that the kernel selects.
        let page = unsafe {
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), BUFFER, rights, kind, -1, 0)
        };
        if page == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the path is NUL-terminated.
        let file = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        let (mut lines, mut found) = (Lines::default(), None);
        while file >= 0 && found.is_none() {
            // SAFETY: the buffer has this size, and is not accessed otherwise.
            let read = unsafe { libc::read(file, page, BUFFER) };
            let Some(read) = usize::try_from(read).ok().filter(|read| *read > 0) else { break };
            // SAFETY: the call has stored this many bytes in the buffer.
            let text = unsafe { std::slice::from_raw_parts(page.cast::<u8>(), read) };
            let mut mappings = text.iter().filter_map(|byte| lines.take(*byte));
            found = mappings.find(|(mapping, named_stack)| wanted(mapping, *named_stack));
        }
        if file >= 0 {
            // SAFETY: opened above, and not used any more.
            unsafe { libc::close(file) };
        }
        // SAFETY: mapped above, and not referenced any more.
        unsafe { libc::munmap(page, BUFFER) };
        found
    }

    /// An incremental parser of the list of mappings.
    #[derive(Debug, Default)]
    struct Lines {
        start: usize,
        end: usize,
        /// 0 in the first address, 1 in the second, 2 after both.
        part: u8,
        /// The last bytes of the line.
        last: u64,
    }

    impl Lines {
        /// Processes the next byte. At the end of a line, returns the mapping, and whether it is the main thread's stack.
        fn take(&mut self, byte: u8) -> Option<(Range<usize>, bool)> {
            let digit = char::from(byte).to_digit(16).unwrap_or(0) as usize;
            match (self.part, byte) {
                (_, b'\n') => {
                    let line = std::mem::take(self);
                    let is_main = line.last.to_be_bytes()[1..] == *b"[stack]";
                    return Some((line.start..line.end, is_main));
                }
                (0, b'-') => self.part = 1,
                (1, b' ') => self.part = 2,
                (0, _) => self.start = self.start.wrapping_mul(16).wrapping_add(digit),
                (1, _) => self.end = self.end.wrapping_mul(16).wrapping_add(digit),
                _ => self.last = self.last << 8 | u64::from(byte),
            }
            None
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_stack_of_each_thread_is_found() {
            let here = || {
                let local = 0_u8;
                let at = std::hint::black_box(&raw const local) as usize;
                let found = of_this_thread();
                assert!(found.contains(&at), "{at:x} in {found:x?}");
                assert_eq!(of_this_thread(), found);
            };
            std::thread::spawn(here).join().expect("found");
            here();
        }

        #[test]
        fn lines_of_maps_are_parsed() {
            let text =
                b"1000-2000 rw-p 00000000 00:00 0 \n7ffc0-7ffd0 rw-p 00000000 00:00 0                    [stack]\n";
            let mut lines = Lines::default();
            let found: Vec<_> = text.iter().filter_map(|byte| lines.take(*byte)).collect();
            assert_eq!(found, [(0x1000..0x2000, false), (0x7ffc0..0x7ffd0, true)]);
        }

        #[test]
        fn errno_is_preserved() {
            let kept = keeping_errno(|| {
                // SAFETY: fails with EBADF.
                assert_eq!(unsafe { libc::close(-1) }, -1);
                std::io::Error::last_os_error().raw_os_error()
            });
            assert_eq!(kept, Some(libc::EBADF));
            assert_ne!(std::io::Error::last_os_error().raw_os_error(), kept);
        }
    }
}

#[cfg(not(linux_kernel))]
mod bounds {
    use std::ops::Range;

    pub(super) fn of_this_thread() -> Range<usize> {
        0..0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: usize = size_of::<usize>();
    const BASE: usize = 0x1000;

    /// The callers found from the frame at word `first`, in a stack of these words.
    fn callers(words: &[usize], first: usize, depth: usize) -> Vec<u64> {
        callers_of(0, words, first, depth)
    }

    /// The same, starting from the stack pointer `site`.
    fn callers_of(site: usize, words: &[usize], first: usize, depth: usize) -> Vec<u64> {
        let mut callers = vec![0; depth];
        let read = |at: usize| {
            assert!(at.is_multiple_of(WORD), "{at:x}");
            words[(at - BASE) / WORD]
        };
        let count = follow(BASE + first * WORD, site, BASE..BASE + words.len() * WORD, &mut callers, read);
        callers.truncate(count);
        callers
    }

    #[test]
    fn callers_below_the_site_are_left_out_and_take_no_room() {
        let at = |word: usize| BASE + word * WORD;
        let words = [7, at(3), 101, at(6), 102, 7, 0, 103];
        // The words with return addresses are 2, 4 and 7.
        for (site, expected) in [(2, &[101, 102, 103][..]), (3, &[102, 103]), (4, &[102, 103]), (5, &[103]), (8, &[])] {
            assert_eq!(callers_of(at(site), &words, 1, 9), expected, "{site}");
        }
        assert_eq!(callers_of(at(3), &words, 1, 1), [102]);
    }

    #[test]
    fn frames_are_followed_while_they_ascend_inside_the_stack() {
        let at = |word: usize| BASE + word * WORD;
        let words = [7, at(3), 101, at(6), 102, 7, 0, 103];
        assert_eq!(callers(&words, 1, 9), [101, 102, 103]);
        assert_eq!(callers(&words, 1, 2), [101, 102]);
        // Frames that point to themselves, downwards, out of the stack, to its last word, to an unaligned address, or to null.
        for next in [at(1), at(0), at(8), at(7), at(3) + 1, usize::MAX, usize::MAX - WORD, 0] {
            assert_eq!(callers(&[7, next, 101, 0, 102, 7, 7, 7], 1, 9), [101], "{next:x}");
        }
        assert_eq!(callers(&words, 7, 9), [0_u64; 0], "half a frame");
        assert_eq!(callers(&[0, 0], 0, 9), [0_u64; 0], "a return address of 0");
    }
}
