//! Fields of every type: babeltrace2 shows them, and the text sink writes the same bytes.

#![expect(clippy::cast_sign_loss, reason = "the fields are meant to show the same bits in many ways")]

use crate::common::{Outcome, Recording, Shared, assert_balances, place, view};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use tracepoint_reader::Trace;
use tracepoint_reader::text::{Style, TextOptions, TextWriter};
use tracepoint_ring::channel::Channel;
use tracepoint_sinks::{CtfSink, TextSink};

tracepoint::define_trace! {
    provider = "types";

    /// Integers. A comment with */ in it, and
    /// a second line.
    #[level(Warning)]
    pub integers(n: i64) {
        /// The smallest /* there is.
        a: u8 = n as u8,
        b: i16 = n as i16,
        c: u32 = n as u32,
        d: i64 = n,
        size: usize = n as usize,
        truth: bool = n != 0,
        hexadecimal: hex u64 = n as u64,
        octal: oct u16 = n as u16,
        binary: bin u8 = n as u8,
        port: be u16 = n as u16,
    }
    pub floats(x: f64) { single: f32 = x as f32, double: f64 = x }
    pub texts(text: &str, path: &Path) { text: str = text, file: path = path }
    pub arrays(bytes: &[u8], fixed: [u16; 3]) { data: [u8] = bytes, fixed: [u16; 3] = fixed, data_length: u8 = 1 }
    pub modes(mode: u8) { mode: enum u8 { Idle = 0, Run = 1 } = mode }
    pub keywords(n: u8) { r#struct: u8 = n, event: u8 = n, size: u8 = n }
    pub nothing(n: u8) if n > 0 { }
}

/// Compares a file of the trace with its golden file, except for the process, its ring, and checksums. For an intended change of the format,
/// `TRACEPOINT_GOLDEN=1` writes the golden file.
fn assert_golden(name: &str, text: &str) -> Outcome {
    // The checksums cover the id of the process.
    let mut text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("/*crc32c ")).collect();
    for key in ["vpid = ", "\"pid\": ", "\"instance\": ", "channel0_", "\"packets\": "] {
        let parts: Vec<_> = text.split(key).collect();
        let rest = parts[1..].iter().map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        text = [parts[0]].into_iter().chain(rest).collect::<Vec<_>>().join(&format!("{key}1"));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if env::var_os("TRACEPOINT_GOLDEN").is_some() {
        fs::write(&path, &text)?;
    }
    assert!(text == fs::read_to_string(&path)?, "{name} differs from {}: {text}", path.display());
    Ok(())
}

#[test]
fn every_type_is_read_back() -> Outcome {
    let place = place();
    let dir = place.path().join("trace");
    let text = Shared::default();
    let recording = Recording::start(
        Channel::default(),
        vec![Box::new(CtfSink::create(&dir)?), Box::new(TextSink::new(text.clone()).options(Style::Babeltrace.into()))],
    )?;
    tracepoint::trace!(integers(-2));
    tracepoint::trace!(floats(-0.1));
    tracepoint::trace!(texts("größer \"als\"\n\\", Path::new("/tmp/a b")));
    tracepoint::trace!(arrays(&[1, 2, 255], [5, 6, 7]));
    tracepoint::trace!(arrays(&[], [0; 3]));
    tracepoint::trace!(modes(1));
    tracepoint::trace!(modes(9));
    tracepoint::trace!(keywords(3));
    let reports = recording.finish();
    assert!(reports.iter().all(|report| report.error.is_none()), "{reports:?}");

    assert_golden("metadata", &fs::read_to_string(dir.join("metadata"))?)?;
    assert_golden("account.json", &fs::read_to_string(dir.join(".account/account.json"))?)?;
    let (stdout, warnings) = view(&dir);
    assert_eq!(warnings, "");
    let fields: Vec<_> =
        stdout.lines().filter_map(|line| line.split_once(" types:")).map(|(_, rest)| without_context(rest)).collect();
    let expected = [
        "integers: { a = 254, b = -2, c = 4294967294, d = -2, size = 18446744073709551614, truth = 1, \
         hexadecimal = 0xFFFFFFFFFFFFFFFE, octal = 0177776, binary = 0b11111110, port = 65534 }",
        "floats: { single = -0.1, double = -0.1 }",
        "texts: { text = \"größer \\\"als\\\"\\n\\\\\", file = \"/tmp/a b\" }",
        "arrays: { _data_length_ = 3, data = [ [0] = 1, [1] = 2, [2] = 255 ], fixed = [ [0] = 5, [1] = 6, [2] = 7 ], \
         data_length = 1 }",
        "arrays: { _data_length_ = 0, data = [ ], fixed = [ [0] = 0, [1] = 0, [2] = 0 ], data_length = 1 }",
        "modes: { mode = ( \"Run\" : container = 1 ) }",
        "modes: { mode = ( <unknown> : container = 9 ) }",
        "keywords: { struct = 3, event = 3, size = 3 }",
    ];
    assert_eq!(fields, expected);
    assert_eq!(text.text(), stdout, "both sinks, line by line");
    let compact = [
        "integers a=254 b=-2 c=4294967294 d=-2 size=18446744073709551614 truth=true hexadecimal=0xfffffffffffffffe \
         octal=0o177776 binary=0b11111110 port=65534",
        "floats single=-0.1 double=-0.1",
        "texts text=\"größer \\\"als\\\"\\n\\\\\" file=\"/tmp/a b\"",
        "arrays data=0x0102ff fixed=[5, 6, 7] data_length=1",
        "arrays data=0x fixed=[0, 0, 0] data_length=1",
        "modes mode=Run",
        "modes mode=9",
        "keywords struct=3 event=3 size=3",
    ];
    let mut writer = TextWriter::new(TextOptions::default());
    let (mut lines, process) = (Vec::new(), format!("[{}", std::process::id()));
    Trace::open(&dir)?.items().try_for_each(|item| writer.write_item(&mut lines, &item))?;
    let lines = String::from_utf8(lines)?;
    assert!(lines.lines().all(|line| line.contains(&process)), "{lines}");
    let fields: Vec<_> = lines.lines().filter_map(|line| line.split_once(" types:")).map(|(_, rest)| rest).collect();
    assert_eq!(fields, compact);
    assert_babeltrace_1_reads(&dir, expected.len());
    assert_balances(&dir);
    Ok(())
}

/// Babeltrace 1, and its Python binding, which lttng-analyses uses, still have users. The binding cannot read an enumeration whose value has no name.
fn assert_babeltrace_1_reads(dir: &Path, events: usize) {
    const COUNT: &str = "import babeltrace, sys
traces = babeltrace.TraceCollection()
traces.add_traces_recursive(sys.argv[1], 'ctf')
print(sum(1 for event in traces.events if event.name == 'types:modes' or list(event.items())))";
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(dir).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error} (see scripts/setup.sh)"));
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {messages}");
        // It must not warn about the directory with the account; it does warn of an enumeration value without a name.
        assert!(!messages.contains("directory"), "{program}: {messages}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run("babeltrace", &["--clock-seconds"]).matches(" types:").count(), events);
    assert_eq!(run("/usr/bin/python3", &["-c", COUNT]).trim(), events.to_string());
}

/// Returns the event's name and fields, without the packet's context between them.
fn without_context(rest: &str) -> String {
    let (name, rest) = rest.split_once(": ").unwrap_or((rest, ""));
    let (_, fields) = rest.split_once(" }, ").unwrap_or(("", rest));
    format!("{name}: {fields}")
}
