//! The switch of USDT: breakpoints that the kernel sets and counts.
//!
//! A site is found by its note in the file of this program. `perf_event_open` then makes a counter of hits for each address; the
//! operating system raises the semaphore meanwhile, if there is one. This needs root, or a low `kernel.perf_event_paranoid`.

use crate::tally;
use crate::variant::{Armed, Unusable};
use object::elf::{FileHeader64, NoteType};
use object::read::elf::{ElfFile, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSegment};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Result};
use std::os::fd::FromRawFd;

/// The effect of an enabled USDT site.
pub(super) const DOES: &str = "a breakpoint; the kernel counts the hit and looks at no argument";

/// The position of a site in the file.
#[derive(Clone, Copy)]
struct Place {
    code: u64,
    semaphore: u64,
}

/// Counts the hits of every site of a probe until the state ends.
pub(super) fn attach(provider: &str, name: &str) -> std::result::Result<Armed, Unusable> {
    let refused = |error: &dyn std::fmt::Display| {
        Unusable(format!("uprobes need root and a kernel that has them ({error}); off, it could not be checked"))
    };
    let places = places(provider, name).map_err(|error| refused(&error))?;
    if places.is_empty() {
        return Err(Unusable(format!("this program holds no site of {provider}:{name}")));
    }
    let counters: Vec<File> = places.into_iter().map(open).collect::<Result<_>>().map_err(|error| refused(&error))?;
    Ok(Armed::until(move || {
        for mut counter in counters {
            let mut hits = [0; 8];
            counter.read_exact(&mut hits).expect("a perf counter gives its value");
            tally::add_hits(u64::from_ne_bytes(hits));
        }
    }))
}

/// Opens a counter for one site.
fn open(place: Place) -> Result<File> {
    const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    const ANY_CPU: libc::c_int = -1;
    const NO_GROUP: libc::c_int = -1;
    const THIS_THREAD: libc::pid_t = 0;
    let kind: u64 = fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?
        .trim()
        .parse()
        .map_err(|_| std::io::Error::other("the type of uprobe events is no number"))?;
    let path = CString::new("/proc/self/exe").expect("no NUL in it");
    let mut attributes = [0u64; 9];
    // struct perf_event_attr, its words: 0 type and size, 1 config (from bit 32 on: the semaphore's place), 7 the path, 8 the
    // place in the file.
    attributes[0] = kind | (size_of_val(&attributes) as u64) << 32;
    attributes[1] = place.semaphore << 32;
    attributes[7] = path.as_ptr().expose_provenance() as u64;
    attributes[8] = place.code;
    // SAFETY: the attributes are as long as they say, and the path outlives the call, which copies both.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), THIS_THREAD, ANY_CPU, NO_GROUP, FLAG_FD_CLOEXEC)
    };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just opened and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor as libc::c_int) })
}

/// Finds the sites of a probe by the notes that systemtap defined: three addresses, then provider, name and arguments as text.
fn places(provider: &str, name: &str) -> Result<Vec<Place>> {
    const SITE: NoteType = NoteType(3);
    let bytes = fs::read("/proc/self/exe")?;
    let elf = ElfFile::<FileHeader64<Endianness>>::parse(&*bytes).map_err(std::io::Error::other)?;
    let (header, endian) = (elf.elf_header(), elf.endian());
    let sections = header.sections(endian, &*bytes).map_err(std::io::Error::other)?;
    let in_file = |address: u64| {
        elf.segments()
            .find(|segment| (segment.address()..segment.address() + segment.size()).contains(&address))
            .map(|segment| address - segment.address() + segment.file_range().0)
    };
    let mut places = Vec::new();
    for (_, section) in sections.enumerate() {
        let Some(mut notes) = section.notes(endian, &*bytes).map_err(std::io::Error::other)? else { continue };
        while let Some(note) = notes.next().map_err(std::io::Error::other)? {
            if note.name() != b"stapsdt" || note.n_type(endian) != SITE {
                continue;
            }
            let Some((addresses, text)) = note.desc().split_at_checked(24) else { continue };
            let mut text = text.split(|byte| *byte == 0);
            if text.next() != Some(provider.as_bytes()) || text.next() != Some(name.as_bytes()) {
                continue;
            }
            let address = |index: usize| u64::from_le_bytes(addresses[8 * index..][..8].try_into().expect("8 bytes"));
            // The linker writes 0 where it removed the function that the site was in.
            if let Some(code) = in_file(address(0)).filter(|_| address(0) != 0) {
                let semaphore = if address(2) == 0 { 0 } else { in_file(address(2)).unwrap_or(0) };
                places.push(Place { code, semaphore });
            }
        }
    }
    Ok(places)
}
