//! The code mapped into a process, by which readers of its trace find the functions of call stacks.

use fileguard::CheckedFd;
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

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
    /// The end of the first of the merged mappings.
    end_of_first: u64,
    /// The offset in the file at which it begins.
    offset: u64,
    path: &'a str,
}

/// Code that is mapped in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedCode {
    /// The addresses at which it begins and ends.
    pub start: u64,
    /// See [`start`](Self::start).
    pub end: u64,
    /// The offset in the file at which it begins.
    pub offset: u64,
    /// The build id of the file in base 16, if it has one.
    pub build_id: Option<String>,
    /// The path of the file in the process.
    pub path: String,
}

/// Returns the mapped code of this process as in the metadata: `START-END OFFSET BUILD-ID PATH`, numbers in base 16, `-` for a file without a build
/// id.
pub fn modules() -> Vec<String> {
    let describe = |MappedCode { start, end, offset, build_id, path }: MappedCode| {
        format!("{start:x}-{end:x} {offset:x} {} {path}", build_id.as_deref().unwrap_or("-"))
    };
    // Without this file, call stacks have addresses only.
    let maps = fileguard::read_to_string("/proc/self/maps").unwrap_or_default();
    code(&maps, |mapping| vec![mapping.path.into()]).into_iter().map(describe).collect()
}

/// Returns the mapped code of a process; none if it has ended, or if this process lacks the rights to read its mappings. Files are read
/// for their build ids.
pub fn modules_of(pid: u32) -> Vec<MappedCode> {
    let proc = Path::new("/proc").join(pid.to_string());
    let files = |Mapping { start, end_of_first, path, .. }: &Mapping<'_>| {
        // The first one is the mapped file itself, and needs rights.
        let root = proc.join("root").join(path.trim_start_matches('/'));
        vec![proc.join("map_files").join(format!("{start:x}-{end_of_first:x}")), root]
    };
    code(&fileguard::read_to_string(proc.join("maps")).unwrap_or_default(), files)
}

/// Returns the code in the text of `/proc/PID/maps`. `files` returns the paths by which this process may open a mapped file.
fn code(maps: &str, files: impl Fn(&Mapping<'_>) -> Vec<PathBuf>) -> Vec<MappedCode> {
    let describe = |mapping: Mapping<'_>| {
        let file = files(&mapping).iter().find_map(|path| open_file(path));
        let build_id = file.and_then(|file| build_id(&file));
        let Mapping { start, end, offset, path, .. } = mapping;
        MappedCode { start, end, offset, build_id, path: path.to_owned() }
    };
    mappings(maps).into_iter().take(MAX_MODULES).map(describe).collect()
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
    let (start, end, offset) = (number(start)?, number(end)?, number(words.next()?)?);
    let mapping = Mapping { start, end, end_of_first: end, offset, path };
    (is_code && mapping.start >= mapping.offset).then_some(mapping)
}

/// Opens a file. Its path may meanwhile be that of a pipe, whose opening would block otherwise.
fn open_file(path: &Path) -> Option<CheckedFd<File>> {
    let file = open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
    CheckedFd::of(File::from(file)).ok()
}

/// Returns the build id of a 64-bit ELF file, from its notes.
fn build_id(file: &File) -> Option<String> {
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
            Mapping { start: 0x6000, end: 0x9000, end_of_first: 0x7000, offset: 0x1000, path: "/bin/a b" },
            Mapping { start: 0xb000, end: 0xc000, end_of_first: 0xc000, offset: 0x1000, path: "/lib/c.so" },
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

    #[test]
    fn another_process_is_described_like_this_one() {
        let mut of_this = Vec::new();
        for MappedCode { start, end, offset, build_id, path } in modules_of(std::process::id()) {
            of_this.push(format!("{start:x}-{end:x} {offset:x} {} {path}", build_id.as_deref().unwrap_or("-")));
        }
        assert_eq!(of_this, modules());
        assert_eq!(modules_of(u32::MAX), []);
    }

    fn mappings_here() {}
}
