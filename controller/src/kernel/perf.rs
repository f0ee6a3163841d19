//! `perf_event_open`: opens an event on a CPU, and maps the ring buffer of that CPU.
#![expect(
    unsafe_code,
    reason = "the system calls have no safe interface, and the kernel writes to the mapped ring buffer"
)]

use memmap2::{MmapOptions, MmapRaw};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use tracepoint_reader::kernel::SAMPLE_TYPE;

/// `PERF_TYPE_TRACEPOINT`, `PERF_FORMAT_LOST` and `PERF_FLAG_FD_CLOEXEC` of `linux/perf_event.h`.
const TRACEPOINT: u32 = 2;
const FORMAT_LOST: u64 = 1 << 4;
const CLOEXEC: libc::c_ulong = 1 << 3;
/// Bits of the flags of `perf_event_attr`.
const DISABLED: u64 = 1;
const WATERMARK: u64 = 1 << 14;
const USE_CLOCKID: u64 = 1 << 25;
/// `PERF_EVENT_IOC_ENABLE`, `_DISABLE` and `_SET_OUTPUT`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_OUTPUT: libc::c_ulong = 0x2405;
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

/// An event on one CPU. The events of a CPU form a group: they are enabled and disabled together with the first one, and are initially
/// disabled.
#[derive(Debug)]
pub(super) struct CpuEvent(File);

impl CpuEvent {
    /// Opens the event with this number, in the group of `first` and with its ring buffer; without `first`, it is the first of a group.
    /// Readers of the ring buffer are woken when it contains `watermark` bytes.
    pub(super) fn open(number: u16, cpu: u32, watermark: usize, first: Option<&Self>) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TRACEPOINT,
            size: size_of::<Attributes>() as u32,
            config: number.into(),
            sample_period: 1,
            sample_type: SAMPLE_TYPE,
            read_format: FORMAT_LOST,
            flags: WATERMARK | USE_CLOCKID | if first.is_none() { DISABLED } else { 0 },
            wakeup_watermark: u32::try_from(watermark).unwrap_or(u32::MAX),
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let all: libc::pid_t = -1;
        let group: libc::c_int = first.map_or(-1, |first| first.0.as_raw_fd());
        // SAFETY: the kernel reads `size` bytes of `attributes`, which lives until the call returns, and writes at most to its `size`, which
        // nothing reads afterwards.
        let fd = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, all, cpu.cast_signed(), group, CLOEXEC)
        };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a new descriptor that nothing else owns.
        let event = Self(unsafe { OwnedFd::from_raw_fd(fd) }.into());
        if let Some(first) = first {
            event.control(SET_OUTPUT, first.0.as_raw_fd())?;
        }
        Ok(event)
    }

    /// Enables the group whose first event this is.
    pub(super) fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    /// Disables the group whose first event this is.
    pub(super) fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_int) -> io::Result<()> {
        // SAFETY: these requests take a number, and touch no memory of this process.
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
