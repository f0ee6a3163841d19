//! The notes in the files of programs and libraries, however they are linked: one for each marker and no others. Each has its own `nop` in
//! the code, its own semaphore in writable data, and the arguments and types of its fields. A tool that changes a semaphore switches the
//! event on, by the program's own `poll` and by an agent.

use crate::fixture::{Build, run};
use object::{Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A note of `.note.stapsdt`, and its fields of `.note.tracepoint`.
struct Note {
    place: u64,
    base: u64,
    semaphore: u64,
    arguments: String,
    fields: String,
}

/// The descriptions of the notes in a section.
fn notes(file: &object::File<'_>, section: &str, owner: &str) -> Vec<Vec<u8>> {
    let data = file.section_by_name(section).expect(section).data().expect("bytes");
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("4 bytes")) as usize;
    let (mut notes, mut at) = (Vec::new(), 0);
    while at < data.len() {
        let (name, description) = (word(at), word(at + 4));
        let name_at = at + 12;
        assert_eq!(&data[name_at..name_at + name - 1], owner.as_bytes());
        let description_at = name_at + name.next_multiple_of(4);
        notes.push(data[description_at..description_at + description].to_vec());
        at = description_at + description.next_multiple_of(4);
    }
    notes
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Returns the notes of a file by the names of their events.
fn read(path: &Path) -> BTreeMap<String, Note> {
    let bytes = std::fs::read(path).expect("a program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let fields: BTreeMap<u64, String> = notes(&file, ".note.tracepoint", "tracepoint")
        .into_iter()
        .map(|note| (word(&note, 0), text(&note[8..note.len() - 1])))
        .collect();
    let mut read = BTreeMap::new();
    for note in notes(&file, ".note.stapsdt", "stapsdt") {
        let mut texts = note[24..].split(|byte| *byte == 0).map(text);
        let mut next = || texts.next().expect("a text");
        let (name, arguments) = (format!("{}:{}", next(), next()), next());
        let (place, base, semaphore) = (word(&note, 0), word(&note, 8), word(&note, 16));
        let fields = fields[&semaphore].clone();
        let earlier = read.insert(name.clone(), Note { place, base, semaphore, arguments, fields });
        assert!(earlier.is_none(), "{name} has two notes");
    }
    read
}

/// Checks that each note has its own `nop` in the code, and a semaphore.
fn check_places(path: &Path) -> BTreeMap<String, Note> {
    let bytes = std::fs::read(path).expect("a program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let section = |name: &str| {
        let section = file.section_by_name(name).expect(name);
        section.address()..section.address() + section.size()
    };
    let notes = read(path);
    let (code, words, base) = (section(".text"), section(".probes"), section(".stapsdt.base").start);
    for (name, note) in &notes {
        assert!(code.contains(&note.place) && words.contains(&note.semaphore) && note.base == base, "{name}");
        let at = usize::try_from(note.place - code.start).expect("an offset");
        assert_eq!(file.section_by_name(".text").expect("code").data().expect("bytes")[at], 0x90, "{name}: a nop");
    }
    let different = |of: fn(&Note) -> u64| notes.values().map(of).collect::<BTreeSet<_>>().len();
    assert_eq!((different(|note| note.place), different(|note| note.semaphore)), (notes.len(), notes.len()));
    notes
}

fn check(path: &Path, listed: &BTreeSet<String>) {
    let notes = check_places(path);
    assert_eq!(notes.keys().cloned().collect::<BTreeSet<_>>(), *listed);
    for (name, arguments, fields) in [
        (
            "usdt:request",
            "8@0 -1@8 1@16 -4@24 8@32 8@40 8@48 8@56 8@64",
            "id:u64,small:i8,code:Option<i32>,name:str,data:[u8],ratio:f64",
        ),
        (
            "usdt:wide",
            "8@0 8@8",
            "a:u64,b:i32,c:u16,d:hex u32,e:bool,f:u64,g:u64,h:u64,i:u64,path:path,address:str,ports:[u16]",
        ),
        ("usdt:tick", "", ""),
        ("usdt:work_begin", "8@0 8@8 8@16", "span_id:u64,parent_id:u64,id:u64"),
        (
            "usdt:whole_begin",
            "8@0 8@8 8@16 8@24 8@32 1@40 -4@48",
            "span_id:u64,parent_id:u64,id:u64,name:str,limit:Option<i32>",
        ),
        ("usdt:partial_begin", "8@0 8@8", "span_id:u64,parent_id:u64"),
        ("usdt:mark", "8@0 8@8 8@16", "id:u64,text:str"),
        ("usdt_lib:unused", "8@0", "n:u64"),
    ] {
        let note = &notes[name];
        assert_eq!(note.fields, fields, "{name}");
        let register = note.arguments.split_once('(').map_or("", |(_, rest)| rest.split_once(')').expect("`)`").0);
        assert_eq!(note.arguments, arguments.replace(' ', &format!("({register}) ")) + &closing(register), "{name}");
    }
}

fn closing(register: &str) -> String {
    if register.is_empty() { String::new() } else { format!("({register})") }
}

fn check_build(build: &Build) {
    let program = build.binary("usdt");
    let listed = run(&program, &["list"]);
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    assert!(listed.contains("usdt_lib:unused"), "{build:?}: what nothing calls is listed, too");
    check(&program, &listed);
}

#[test]
fn dev() {
    check_build(&Build::dev());
    check_switching(&Build::dev());
    // In the same test, because it overwrites the program without the feature.
    check_switching(&Build::dev().feature("agent"));
}

/// A shared library has its own notes, including those of the crates in it: one for C, and one for Rust.
#[test]
fn shared_libraries() {
    for build in [Build::dev(), Build::profile("release"), Build::dev().gnu_ld()] {
        for kind in ["cdylib", "dylib"] {
            let notes = check_places(&build.shared_library("usdt-module", kind));
            assert_eq!(notes["usdt_module:loaded"].fields, "n:u32", "{build:?}, {kind}");
            for name in ["usdt_lib:generic_mark", "usdt_lib:twin_a", "usdt_lib:unused"] {
                assert!(notes.contains_key(name), "{build:?}, {kind}: {name} of {:?}", notes.keys());
            }
        }
    }
}

#[test]
fn release() {
    check_build(&Build::profile("release"));
}

#[test]
fn fat() {
    check_build(&Build::profile("fat"));
}

#[test]
fn dev_with_gnu_ld() {
    check_build(&Build::dev().gnu_ld());
}

#[test]
fn fat_with_gnu_ld() {
    check_build(&Build::profile("fat").gnu_ld());
}

#[test]
fn release_with_identical_functions_folded() {
    check_build(&Build::profile("release").folded());
}

/// A program without the feature has no notes: `.probes` would not disturb anything, but nothing is added without a request.
#[test]
fn without_the_feature() {
    let program = Build::dev().binary("binary");
    let bytes = std::fs::read(program).expect("a program");
    let file = object::File::parse(&*bytes).expect("an object file");
    for section in [".probes", ".note.tracepoint", ".stapsdt.base"] {
        assert!(file.section_by_name(section).is_none(), "{section}");
    }
}

/// A running fixture, and its lines.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(program: &Path, run_dir: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(["request", "3"]).env("TRACEPOINT_RUN_DIR", run_dir);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line, see its errors above").expect("UTF-8")
    }

    /// Writes the semaphore of `usdt:request`, as the kernel does for a uprobe.
    fn set_semaphore(&self, program: &Path, value: u16) {
        let process = format!("/proc/{}", self.child.id());
        let maps = std::fs::read_to_string(format!("{process}/maps")).expect("its mappings");
        let first = maps.lines().find(|line| line.ends_with("/usdt")).expect("the program is mapped");
        let start = u64::from_str_radix(first.split_once('-').expect("a range").0, 16).expect("an address");
        let memory = File::options().write(true).open(format!("{process}/mem")).expect("its memory");
        let semaphore = start + read(program)["usdt:request"].semaphore;
        memory.write_all_at(&value.to_le_bytes(), semaphore).expect("written");
    }
}

/// Checks that a tool's change of a semaphore switches an event on and off.
fn check_switching(build: &Build) {
    let program = build.binary("usdt");
    let run_dir = Path::new("/dev/shm").join(format!("usdt-switching-{}", std::process::id()));
    let mut running = Running::start(&program, &run_dir);
    assert!(running.line().starts_with("pid "));
    running.set_semaphore(&program, 2);
    assert_eq!(running.line(), "on");
    running.child.stdin.as_mut().expect("piped").write_all(b"\n").expect("it reads");
    assert_eq!(running.line(), "fired 3");
    running.set_semaphore(&program, 0);
    assert_eq!(running.line(), "off");
    assert!(running.child.wait().expect("ends").success());
    let _ = std::fs::remove_dir_all(run_dir);
}
