//! Shared by the tests of patched sites: this program's table of sites, read through the linker's symbols, and the code at the sites.
//!
//! This module does not call the core, because these tests check the core's reports about its sites.
#![allow(dead_code)] // each test is a crate of its own and uses a part

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use tracepoint::__macro_support::Key;

/// The opcode of a site that is off: `mov r11d, imm32`, or `nop`.
pub(crate) const OFF: u8 = if cfg!(target_arch = "x86_64") { 0xBB } else { 0xD5 };
/// The opcode of a site that is on: `jmp rel32`, or `b` forward.
pub(crate) const ON: u8 = if cfg!(target_arch = "x86_64") { 0xE9 } else { 0x14 };
/// A byte of a breakpoint instruction.
pub(crate) const BREAKPOINT: u8 = 0xCC;
/// The length of a site.
pub(crate) const LENGTH: usize = if cfg!(target_arch = "x86_64") { 6 } else { 4 };
/// The offset of a site's opcode.
const OPCODE_AT: usize = if cfg!(target_arch = "x86_64") { 1 } else { 3 };

/// The size of a page of code.
pub(crate) fn page_size() -> usize {
    // SAFETY: takes a plain number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("known")
}

/// A site's entry in the program's table.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Entry {
    /// Offset from this field to the site.
    pub(crate) site: i32,
    /// Offset from this field to the cold path.
    pub(crate) cold: i32,
    pub(crate) key: *const Key,
}

unsafe extern "C" {
    // The linker defines these symbols for the bounds of the section, if the program has at least one site.
    safe static __start_tracepoint_sites: u8;
    safe static __stop_tracepoint_sites: u8;
}

/// One site of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    entry: usize,
    pub(crate) address: usize,
    /// The target of the site's jump.
    pub(crate) cold: usize,
    /// The address of the key; the same for all sites of one tracepoint.
    pub(crate) key: usize,
}

/// All sites of this program, by address.
pub(crate) fn sites() -> Vec<Site> {
    assert_ne!(tracepoint::runtime::platform().sites, "flag");
    let start = (&raw const __start_tracepoint_sites).expose_provenance();
    let stop = (&raw const __stop_tracepoint_sites).expose_provenance();
    assert_eq!((stop - start) % size_of::<Entry>(), 0, "the section holds entries and nothing else");
    let mut sites: Vec<Site> = (start..stop)
        .step_by(size_of::<Entry>())
        .map(|at| {
            // SAFETY: within the bounds of the section, which is an array of aligned entries.
            let entry = unsafe { with_exposed_provenance::<Entry>(at).read_volatile() };
            Site {
                entry: at,
                address: at.wrapping_add_signed(entry.site as isize),
                cold: (at + 4).wrapping_add_signed(entry.cold as isize),
                key: entry.key.addr(),
            }
        })
        .collect();
    sites.sort_unstable_by_key(|site| site.address);
    sites
}

/// The first site in the code of `function`, which must have one itself (a site in a called function does not count).
pub(crate) fn site_in(function: *const ()) -> Site {
    let start = function.addr();
    *sites().iter().find(|site| site.address >= start).expect("the function has a site")
}

/// All sites that have the same key as the sites of `function`.
pub(crate) fn sites_of_key_in(function: *const ()) -> Vec<Site> {
    let key = site_in(function).key;
    sites().into_iter().filter(|site| site.key == key).collect()
}

impl Site {
    /// Returns the address of its opcode.
    pub(crate) fn opcode(self) -> usize {
        self.address + OPCODE_AT
    }

    /// Returns the opcode.
    pub(crate) fn byte(self) -> u8 {
        byte(self.opcode())
    }

    /// The bytes of a site at `address`, in the form with this opcode.
    pub(crate) fn bytes_at(self, address: usize, form: u8) -> [u8; LENGTH] {
        let distance = |end: usize| self.cold.wrapping_sub(address + end).cast_signed() as i32;
        let mut bytes = [0; LENGTH];
        if cfg!(target_arch = "x86_64") {
            bytes[..2].copy_from_slice(&[0x41, form]);
            bytes[2..].copy_from_slice(&distance(LENGTH).to_le_bytes());
        } else if form == OFF {
            bytes.copy_from_slice(&0xD503_201F_u32.to_le_bytes());
        } else {
            bytes.copy_from_slice(&(0x1400_0000 | (distance(0) / 4)).to_le_bytes());
        }
        bytes
    }

    /// Returns whether the site has one of its two forms, as a whole.
    pub(crate) fn is_whole(self) -> bool {
        let bytes: [u8; LENGTH] = std::array::from_fn(|offset| byte(self.address + offset));
        [OFF, ON].iter().any(|form| bytes == self.bytes_at(self.address, *form))
    }

    /// Returns the entry, mutable: the section is writable. No thread may switch sites meanwhile.
    pub(crate) fn entry(self) -> *mut Entry {
        with_exposed_provenance_mut(self.entry)
    }
}

/// Reads a byte of this program's code.
pub(crate) fn byte(address: usize) -> u8 {
    // SAFETY: callers pass addresses within the code of this program, which is readable. Volatile, because code changes.
    unsafe { with_exposed_provenance::<u8>(address).read_volatile() }
}

/// Writes a byte of this program's code, as a debugger would. No thread may run that code meanwhile.
pub(crate) fn poke(address: usize, byte: u8) {
    let memory = OpenOptions::new().write(true).open("/proc/self/mem").expect("may be written by tests");
    memory.write_all_at(&[byte], address as u64).expect("code can be written");
    assert_eq!(self::byte(address), byte);
}

/// Asserts that all sites have this form and are intact.
#[track_caller]
pub(crate) fn assert_all(sites: &[Site], form: u8) {
    assert!(!sites.is_empty(), "there are sites to look at");
    for site in sites {
        assert!(site.byte() == form, "{:#04x} instead of {form:#04x}: {site:x?}", site.byte());
        assert!(site.is_whole(), "the distance is as it was: {site:x?}");
    }
}

/// Asserts that every site of this program is off.
#[track_caller]
pub(crate) fn assert_all_off() {
    assert_all(&sites(), OFF);
}

/// The kernel's list of the mappings that contain this program's sites.
pub(crate) fn code_maps() -> Vec<String> {
    let sites = sites();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
    let holds_sites = |line: &&str| {
        let (start, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("two addresses");
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).expect("hexadecimal"));
        sites.iter().any(|site| (start..end).contains(&site.address))
    };
    let found: Vec<String> = maps.lines().filter(holds_sites).map(str::to_owned).collect();
    assert!(!found.is_empty(), "sites are mapped");
    found
}

/// Asserts that no page with sites has stayed writable.
#[track_caller]
pub(crate) fn assert_code_is_not_writable() {
    for line in code_maps() {
        assert!(line.split(' ').nth(1).is_some_and(|permissions| permissions.starts_with("r-x")), "{line}");
    }
}

/// Waits for a child and returns its exit code: 0 if its function returned, 1 if that panicked; 99 if a signal ended it.
pub(crate) fn finish_child(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is a valid place, `pid` a child of this process for which no other thread waits.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 99 }
}

/// Runs `child` in a forked process; [`finish_child`] waits for its end.
pub(crate) fn start_child(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child runs `child` and ends with `_exit`. Fork handlers of the core and of the C library leave the locks of the core
    // and of malloc free in the child. The child does not use the harness's locks: panics write to the standard error directly.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork: {}", std::io::Error::last_os_error());
    if pid == 0 {
        std::panic::set_hook(Box::new(|panic| {
            let _ = writeln!(std::io::stderr(), "in the child: {panic}");
        }));
        let ended = catch_unwind(AssertUnwindSafe(child));
        // SAFETY: takes a plain number. The exit handlers, which `_exit` skips, belong to the parent.
        unsafe { libc::_exit(i32::from(ended.is_err())) };
    }
    pid
}
