//! The code mapped into this process, by which readers of its trace find the functions of call stacks.

use fileguard::CheckedFd;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Maximum number of described mappings.
const MAX_MODULES: usize = 1024;
/// Maximum size of a file's notes that are read, in bytes.
const MAX_NOTES: u64 = 1 << 16;

/// A part of a file that is mapped as code. Mappings of one file with the same offset between file and memory are merged, because pages
/// with patched sites have separate mappings.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    start: u64,
    end: u64,
    /// The offset in the file at which it begins.
    offset: u64,
    path: &'a str,
}

/// Returns the mapped code as in the metadata: `START-END OFFSET BUILD-ID PATH`, numbers in base 16, `-` for a file without a build id.
pub fn modules() -> Vec<String> {
    // Without this file, call stacks have addresses only.
    let maps = fileguard::read_to_string("/proc/self/maps").unwrap_or_default();
    let describe = |Mapping { start, end, offset, path }: &Mapping<'_>| {
        let id = build_id(Path::new(path)).unwrap_or_else(|| "-".to_owned());
        format!("{start:x}-{end:x} {offset:x} {id} {path}")
    };
    mappings(&maps).iter().take(MAX_MODULES).map(describe).collect()
}

/// Finds the code in the lines of `/proc/PID/maps`.
fn mappings(maps: &str) -> Vec<Mapping<'_>> {
    let mut found: Vec<Mapping<'_>> = Vec::new();
    for one in maps.lines().filter_map(mapping) {
        match found.last_mut() {
            Some(last) if last.path == one.path && last.start - last.offset == one.start - one.offset => {
                last.end = one.end;
            }
            _ => found.push(one),
        }
    }
    found
}

/// Parses a line; `None` if it does not describe executable code of a file.
fn mapping(line: &str) -> Option<Mapping<'_>> {
    let path = &line[line.find('/')?..];
    let mut words = line.split(' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.as_bytes().get(2) == Some(&b'x');
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mapping = Mapping { start: number(start)?, end: number(end)?, offset: number(words.next()?)?, path };
    (is_code && mapping.start >= mapping.offset).then_some(mapping)
}

/// Returns the build id of a 64-bit ELF file, from its notes.
fn build_id(path: &Path) -> Option<String> {
    let file = File::open(path).and_then(CheckedFd::of).ok()?;
    let read = |at: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length.min(MAX_NOTES)).ok()?];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let header = read(0, 64)?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (number(&header, 32, 8)?, number(&header, 54, 2)?, number(&header, 56, 2)?);
    let segments = read(table, size * count)?;
    let notes = segments.chunks_exact(usize::try_from(size).ok().filter(|size| *size >= 56)?);
    // PT_NOTE
    let mut notes = notes.filter(|segment| number(segment, 0, 4) == Some(4));
    notes.find_map(|segment| gnu_build_id(&read(number(segment, 8, 8)?, number(segment, 32, 8)?)?))
}

/// Finds the note of type `NT_GNU_BUILD_ID`.
fn gnu_build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let [name, value, kind] = [number(notes, 0, 4)?, number(notes, 4, 4)?, number(notes, 8, 4)?];
        let (name, value) = (usize::try_from(name).ok()?, usize::try_from(value).ok()?);
        let begin = 12 + name.next_multiple_of(4);
        let found = notes.get(begin..begin + value)?;
        if kind == 3 && notes.get(12..16)? == b"GNU\0" {
            return Some(found.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat());
        }
        notes = notes.get(begin + value.next_multiple_of(4)..)?;
    }
}

/// Reads a little-endian number of up to 8 bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code_are_joined() {
        let maps = "\
5000-6000 r--p 00000000 08:01 5 /bin/a b
6000-7000 r-xp 00001000 08:01 5 /bin/a b
7000-8000 r-xp 00000000 00:00 0
8000-9000 r-xp 00003000 08:01 5 /bin/a b
9000-a000 rw-p 00004000 08:01 5 /bin/a b
b000-c000 r-xp 00001000 08:01 6 /lib/c.so
d000-e000 r-xp 00000000 00:00 0 [vdso]
";
        let expected = [
            Mapping { start: 0x6000, end: 0x9000, offset: 0x1000, path: "/bin/a b" },
            Mapping { start: 0xb000, end: 0xc000, offset: 0x1000, path: "/lib/c.so" },
        ];
        assert_eq!(mappings(maps), expected);
    }

    #[test]
    fn build_ids_are_read_from_notes() {
        let note = |name: &[u8], kind: u8, value: &[u8]| {
            let head = [name.len() as u8, 0, 0, 0, value.len() as u8, 0, 0, 0, kind, 0, 0, 0];
            [&head[..], name, value].concat()
        };
        let notes =
            [note(b"GNU\0", 1, &[0; 16]), note(b"abcd", 3, &[7; 4]), note(b"GNU\0", 3, &[0x1f, 2, 3, 0xff])].concat();
        assert_eq!(gnu_build_id(&notes).as_deref(), Some("1f0203ff"));
        (0..notes.len()).for_each(|length| assert_eq!(gnu_build_id(&notes[..length]), None));
    }

    #[test]
    fn the_test_program_is_described() {
        let program = std::env::current_exe().unwrap();
        let modules = modules();
        let own = modules.iter().find(|module| module.ends_with(program.to_str().unwrap())).unwrap();
        let here = mappings_here as fn() as usize as u64;
        let (start, rest) = own.split_once('-').unwrap();
        let (end, _) = rest.split_once(' ').unwrap();
        let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
        assert!((start..end).contains(&here), "{modules:?}");
    }

    fn mappings_here() {}
}
