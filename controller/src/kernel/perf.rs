//! `perf_event_open`: opens an event on a CPU, of all threads or of one, and maps the ring buffer of that CPU.
#![expect(
    unsafe_code,
    reason = "the system calls have no safe interface, and the kernel writes to the mapped ring buffer"
)]

use memmap2::{MmapOptions, MmapRaw};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_reader::kernel::SAMPLE_TYPE;

/// `PERF_TYPE_SOFTWARE` and `_TRACEPOINT` of `linux/perf_event.h`, like all that follow.
const SOFTWARE: u32 = 1;
const TRACEPOINT: u32 = 2;
/// `PERF_COUNT_SW_CPU_CLOCK`, `_PAGE_FAULTS_MAJ` and `_DUMMY`.
const CPU_CLOCK: u64 = 0;
const MAJOR_FAULTS: u64 = 6;
const DUMMY: u64 = 9;
/// `PERF_FORMAT_LOST` and `PERF_FLAG_FD_CLOEXEC`.
const FORMAT_LOST: u64 = 1 << 4;
const CLOEXEC: libc::c_ulong = 1 << 3;
/// Bits of the flags of `perf_event_attr`.
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const MMAP: u64 = 1 << 8;
const FREQUENCY: u64 = 1 << 10;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// `exclude_callchain_kernel` and `exclude_callchain_user`: samples have call stacks of length 0.
const NO_CALL_STACK: u64 = 1 << 21 | 1 << 22;
const MMAP2: u64 = 1 << 23;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
const BUILD_ID: u64 = 1 << 34;
const INHERIT_THREAD: u64 = 1 << 35;
/// `PERF_EVENT_IOC_ENABLE`, `_DISABLE`, `_SET_OUTPUT` and `_SET_FILTER`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
const SET_FILTER: libc::c_ulong = 1 << 30 | (size_of::<*const libc::c_char>() as libc::c_ulong) << 16 | 0x2406;
/// Offsets in the first page of the mapping.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// `struct perf_event_attr`, version 5.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    /// With [`FREQUENCY`], the number of samples per second.
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// Which event is opened in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ThreadEvent {
    /// The thread begins or ceases to run. Needs no rights for threads of the same user.
    Switch,
    /// The thread has run for another part of a second; and code was mapped.
    Sample { rate: NonZeroU32, with_kernel: bool },
    /// A page fault for which the thread has waited.
    MajorFault,
    /// The tracepoint with this number; with a filter, those of its events that match.
    Tracepoint(u16, Option<CString>),
}

impl Attributes {
    /// Attributes of an event each of whose occurrences is stored.
    fn new(watermark: usize) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            sample_period: 1,
            sample_type: SAMPLE_TYPE,
            read_format: FORMAT_LOST,
            wakeup_watermark: u32::try_from(watermark).unwrap_or(u32::MAX),
            clockid: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }
}

/// An event on one CPU. The events of all threads of a CPU form a group: they are enabled and disabled together with the first one, and are
/// initially disabled. The events of one thread are enabled each by itself.
#[derive(Debug)]
pub(super) struct CpuEvent(File);

impl CpuEvent {
    /// Opens the event with this number, in the group of `first` and with its ring buffer; without `first`, it is the first of a group.
    /// Readers of the ring buffer are woken when it contains `watermark` bytes.
    pub(super) fn open(number: u16, cpu: u32, watermark: usize, first: Option<&Self>) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TRACEPOINT,
            config: number.into(),
            flags: WATERMARK | USE_CLOCKID | NO_CALL_STACK | if first.is_none() { DISABLED } else { 0 },
            ..Attributes::new(watermark)
        };
        let event = Self::open_as(&attributes, -1, cpu, first)?;
        if let Some(first) = first {
            event.control(SET_OUTPUT, first.0.as_raw_fd())?;
        }
        Ok(event)
    }

    /// Opens an event of the calling thread that never fires, to own the ring buffer of a CPU.
    pub(super) fn open_owner(cpu: u32, watermark: usize) -> io::Result<Self> {
        let flags = WATERMARK | USE_CLOCKID | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
        Self::open_as(&Attributes { kind: SOFTWARE, config: DUMMY, flags, ..Attributes::new(watermark) }, 0, cpu, None)
    }

    /// Opens an event of a thread (0 is the calling one), and of the threads that it will start, where they run on this CPU; or of all threads. It
    /// uses the ring buffer of `owner`.
    pub(super) fn open_in_thread(event: &ThreadEvent, thread: Option<u32>, cpu: u32, owner: &Self) -> io::Result<Self> {
        const OF_PROGRAM: u64 = EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR;
        let (kind, config, more) = match event {
            ThreadEvent::Switch => (SOFTWARE, DUMMY, CONTEXT_SWITCH | OF_PROGRAM | NO_CALL_STACK),
            ThreadEvent::Sample { with_kernel, .. } => {
                let of_program = if *with_kernel { 0 } else { OF_PROGRAM };
                (SOFTWARE, CPU_CLOCK, FREQUENCY | MMAP | MMAP2 | BUILD_ID | of_program)
            }
            ThreadEvent::MajorFault => (SOFTWARE, MAJOR_FAULTS, NO_CALL_STACK),
            ThreadEvent::Tracepoint(number, _) => (TRACEPOINT, u64::from(*number), NO_CALL_STACK),
        };
        let sample_period = if let ThreadEvent::Sample { rate, .. } = event { u64::from(rate.get()) } else { 1 };
        let inherited = thread.map_or(0, |_| INHERIT | INHERIT_THREAD);
        // SAMPLE_ID_ALL: a record of a switch then has the thread and the time, as samples have.
        let flags = DISABLED | WATERMARK | USE_CLOCKID | SAMPLE_ID_ALL | inherited | more;
        let attributes = Attributes { kind, config, sample_period, flags, ..Attributes::new(0) };
        let opened = Self::open_as(&attributes, thread.map_or(-1, u32::cast_signed), cpu, None)?;
        opened.control(SET_OUTPUT, owner.0.as_raw_fd())?;
        if let ThreadEvent::Tracepoint(_, Some(filter)) = event {
            // SAFETY: the kernel reads the text up to its NUL, and writes nothing; the text lives until the call returns.
            let result = unsafe { libc::ioctl(opened.0.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        opened.enable()?;
        Ok(opened)
    }

    fn open_as(attributes: &Attributes, thread: libc::pid_t, cpu: u32, group: Option<&Self>) -> io::Result<Self> {
        let group: libc::c_int = group.map_or(-1, |first| first.0.as_raw_fd());
        // SAFETY: the kernel reads `size` bytes of `attributes`, which lives until the call returns, and writes at most to its `size`, which
        // nothing reads afterwards.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
                thread,
                cpu.cast_signed(),
                group,
                CLOEXEC,
            )
        };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a new descriptor that nothing else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }.into()))
    }

    /// Enables the event, or the group whose first event this is.
    pub(super) fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    /// Disables the event, or the group whose first event this is.
    pub(super) fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: these requests take a number or a descriptor, which the kernel checks, and touch no memory of this process.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Returns how often it has fired, and how often it did not fit into the ring buffer.
    pub(super) fn counts(&self) -> io::Result<[u64; 2]> {
        let mut bytes = [[0; 8]; 2];
        (&self.0).read_exact(bytes.as_flattened_mut())?;
        Ok(bytes.map(u64::from_le_bytes))
    }
}

impl AsFd for CpuEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The ring buffer of one CPU, mapped.
#[derive(Debug)]
pub(super) struct RingBuffer {
    map: MmapRaw,
    /// The size of the page before the data, and of the data, a power of two.
    page: usize,
    size: usize,
    /// Number of bytes taken.
    tail: u64,
}

/// The size of a page.
pub(super) fn page_size() -> usize {
    // SAFETY: the call touches no memory of this process.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

impl RingBuffer {
    /// Maps the ring buffer of `event`, with `size` bytes of data: a power of two, and at least a page.
    pub(super) fn map(event: &CpuEvent, size: usize) -> io::Result<Self> {
        let page = page_size();
        let map = MmapOptions::new().len(page + size).map_raw(event.0.as_raw_fd())?;
        Ok(Self { map, page, size, tail: 0 })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= self.page, "in the first page");
        // SAFETY: an aligned word of the first page of the mapping, which lives as long as `self`. The kernel, too, accesses it as a whole.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// Appends all records that the kernel has written to `out`, and releases their space.
    pub(super) fn take(&mut self, out: &mut Vec<u8>) {
        // Acquire pairs with the kernel's barrier between the data and this store of its position.
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        // The kernel never writes more than the free space.
        let len = (head.wrapping_sub(self.tail) as usize).min(self.size);
        let start = (self.tail as usize) & (self.size - 1);
        let first = len.min(self.size - start);
        out.reserve(len);
        for (from, count) in [(start, first), (0, len - first)] {
            let written = out.len();
            // SAFETY: `count` bytes from `from` on are in the data, behind the first page; the kernel does not write to them before `tail` is
            // stored. `out` has room for them, as just reserved, and they are initialized before its length says so.
            unsafe {
                let data = self.map.as_ptr().add(self.page + from);
                data.copy_to_nonoverlapping(out.as_mut_ptr().add(written), count);
                out.set_len(written + count);
            }
        }
        self.tail = head;
        // Release pairs with the kernel's load of the position before it writes to that space: the data were read before.
        self.word(DATA_TAIL).store(head, Ordering::Release);
    }
}
