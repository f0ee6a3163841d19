//! A trace and a `tracectl` command that reads it: the text up to the first NUL is the metadata, the last byte selects the command, and the bytes
//! in between are the packets of a stream. The command ends with an exit code, whatever the trace contains.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// Groups and values are of the fields `v` and `n`, which have several types in the corpus.
const COMMANDS: [&str; 28] = [
    "stat",
    "stat --by v",
    "stat --by v,n --json",
    "stat --by n,v --csv --guard-formulas",
    "stat --by v --groups 3 --prometheus",
    "hist",
    "hist n --by v",
    "hist v --by v",
    "hist v --by n,v --json",
    "hist v --by v --prometheus",
    "hist v --by n -o /dev/null",
    "hist n --heat-map",
    "hist n --heat-map -o /dev/null",
    "hist latency(p:begin,p:end) --by v",
    "hist latency(p:begin,p:end+by+v) --by n --json",
    "report -o /dev/null",
    "export --perfetto /dev/null --counter n,v",
    "export --chrome /dev/null --counter n,v",
    "export --csv /dev/null",
    "export --csv /dev/null --guard-formulas --fields v,n",
    "export --folded /dev/null",
    "export --folded /dev/null --stacks calls",
    "export --flame /dev/null",
    "export --otlp /dev/null",
    "export --otlp-protobuf /dev/null",
    "view --json",
    "view --time delta --fields v",
    "verify",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_last() else { return };
    let Some(end) = rest.iter().position(|byte| *byte == 0) else { return };
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let trace = place.join(format!("verbs-{}", std::process::id()));
    fs::create_dir_all(&trace).unwrap();
    fs::write(trace.join("metadata"), &rest[..end]).unwrap();
    fs::write(trace.join("stream"), &rest[end + 1..]).unwrap();
    let command = COMMANDS[usize::from(*choice) % COMMANDS.len()];
    // `+` stands for a space in an argument.
    let words = command.split(' ').map(|word| word.replace('+', " "));
    let arguments = std::iter::once(OsString::from("tracectl")).chain(words.map(OsString::from));
    let code = tracectl::exit_code_of(arguments.chain([OsStr::new("--").into(), trace.clone().into_os_string()]));
    assert!(code <= 3, "{command}: {code}");
    fs::remove_dir_all(&trace).unwrap();
});
