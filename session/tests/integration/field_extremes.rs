//! Every field type at its extremes, recorded by several threads and read by babeltrace2: each field of each event equals the value that a
//! probe, which writes plain values, received at the same time.

use crate::common::{Outcome, assert_balances, place};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tracepoint_session::sinks::CtfSink;
use tracepoint_session::{Channel, Session};

/// The data of one event.
struct Sample {
    small: (u8, i8, u16, i16),
    large: (u32, i32, u64, i64),
    sized: (usize, isize),
    flag: bool,
    floats: (f32, f64),
    text: String,
    path: PathBuf,
    digest: [u8; 32],
    halves: [i16; 3],
    bytes: Vec<u8>,
    reals: Vec<f64>,
    mode: u8,
}

tracepoint::define_trace! {
    provider = "extremes";

    /// A comment that tries to end: */ event { name = "no"; };
    /// and goes on. "quoted" \ backslash é
    sample(number: u64, s: &Sample) {
        number: u64 = number,
        /// Keywords of TSDL, and a field's own comment */ too.
        integer: u8 = s.small.0,
        string: i8 = s.small.1,
        event: u16 = s.small.2,
        stream: i16 = s.small.3,
        trace: u32 = s.large.0,
        clock: i32 = s.large.1,
        env: u64 = s.large.2,
        callsite: i64 = s.large.3,
        typealias: usize = s.sized.0,
        variant: isize = s.sized.1,
        align: bool = s.flag,
        floating_point: f32 = s.floats.0,
        typedef: f64 = s.floats.1,
        r#struct: str = &s.text,
        path: path = &s.path,
        digest: [u8; 32] = s.digest,
        halves: [i16; 3] = &s.halves,
        bytes: hex [u8] = &s.bytes,
        reals: [f64] = &s.reals,
        r#enum: enum u8 { Idle = 0, "say \"hi\" \\ */" = 1, r#fn = 255 } = s.mode,
        hex_signed: hex i32 = s.large.1,
        oct: oct u16 = s.small.2,
        bin: bin u8 = s.small.0,
        port: be u16 = s.small.2,
        wide: be i64 = s.large.3,
        mixed: hex be u32 = s.large.0,
    }

    /// Empty texts, in an event of their own: babeltrace2 2.0.4 shows, in place of an empty text, the one that it showed for
    /// this field before (`tracectl view` does not).
    blank(n: u64) { n: u64 = n, text: str = "", path: path = "", bytes: [u8] = &[] }

    /// No fields at all.
    empty() {}
}

fn sample(n: usize) -> Sample {
    let texts = ["x", "plain", "é ü 日本語 🦀", "tab\tnewline\nquote\" back\\slash \u{1b}[0m", "nul\0inside", "?'"];
    let long = "0123456789abcdef".repeat(256);
    let text = texts.get(n % 7).map_or(long, |text| (*text).to_owned());
    let paths: [&[u8]; 4] = [b"/plain/path", b"p", b"/not\xff\xfeutf8/\x80", b"/new\nline \"and\" quotes"];
    let floats = [
        0.0,
        -0.0,
        1.5,
        f64::MIN,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-5,
        5e-324,
    ];
    let real = floats[n % floats.len()];
    let (top, low) = (n.is_multiple_of(3), n % 3 == 1);
    let pick = |max: i64, min: i64| {
        if top {
            max
        } else if low {
            min
        } else {
            i64::from((n % 5) as u8) - 2
        }
    };
    let unsigned = |max: u64| if top { max } else { u64::from(!low) * n as u64 % 7 };
    Sample {
        small: (unsigned(255) as u8, pick(127, -128) as i8, unsigned(65535) as u16, pick(32767, -32768) as i16),
        large: (
            unsigned(u64::from(u32::MAX)) as u32,
            pick(i64::from(i32::MAX), i64::from(i32::MIN)) as i32,
            unsigned(u64::MAX),
            pick(i64::MAX, i64::MIN),
        ),
        sized: (unsigned(u64::MAX) as usize, pick(i64::MAX, i64::MIN) as isize),
        flag: n.is_multiple_of(2),
        floats: (real as f32, real),
        text,
        path: PathBuf::from(OsStr::from_bytes(paths[n % paths.len()])),
        digest: [n as u8; 32],
        halves: [i16::MIN, i16::from((n % 100) as u8), i16::MAX],
        bytes: (0..n % 5).map(|i| (i * 85) as u8).collect(),
        reals: floats[..n % 4].to_vec(),
        mode: [0, 1, 255, 7][n % 4],
    }
}

/// Returns the text that babeltrace2 prints for a string.
fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in bytes {
        let byte = if byte == 0 { 0x1A } else { byte };
        match byte {
            b'\\' | b'"' | b'\'' | b'?' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\t' => out.extend(b"\\t"),
            0x1B => out.extend(b"\\e"),
            0x1A => out.extend(b"\\x1a"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

fn array(elements: impl Iterator<Item = String>) -> String {
    let mut text = "[".to_owned();
    for (i, element) in elements.enumerate() {
        let _ = write!(text, "{} [{i}] = {element}", if i == 0 { "" } else { "," });
    }
    text + " ]"
}

/// Formats like C's `%g`, using C's own printf through the printf program of coreutils.
fn printed(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let output = Command::new("/usr/bin/printf").args(["%g", &format!("{value:.30e}")]).env("LC_ALL", "C").output();
    String::from_utf8(output.expect("coreutils' printf runs").stdout).expect("a number")
}

/// Returns the line of an event from `{ number = …` on, formatted from plain values.
fn expected(number: u64, s: &Sample) -> Vec<u8> {
    let mut line = format!(
        "{{ number = {number}, integer = {}, string = {}, event = {}, stream = {}, trace = {}, clock = {}, env = {}, \
         callsite = {}, typealias = {}, variant = {}, align = {}, floating_point = {}, typedef = {}, struct = ",
        s.small.0,
        s.small.1,
        s.small.2,
        s.small.3,
        s.large.0,
        s.large.1,
        s.large.2,
        s.large.3,
        s.sized.0,
        s.sized.1,
        u8::from(s.flag),
        printed(f64::from(s.floats.0)),
        printed(s.floats.1),
    )
    .into_bytes();
    line.extend(quoted(s.text.as_bytes()));
    line.extend(b", path = ");
    line.extend(quoted(s.path.as_os_str().as_bytes()));
    let label = match s.mode {
        0 => "\"Idle\"",
        1 => "\"say \\\"hi\\\" \\\\ */\"",
        255 => "\"fn\"",
        _ => "<unknown>",
    };
    let rest = format!(
        ", digest = {}, halves = {}, _bytes_length = {}, bytes = {}, _reals_length = {}, reals = {}, \
         enum = ( {label} : container = {} ), hex_signed = 0x{:X}, oct = 0{:o}, bin = 0b{:08b}, port = {}, wide = {}, \
         mixed = 0x{:X} }}",
        array(s.digest.iter().map(u8::to_string)),
        array(s.halves.iter().map(i16::to_string)),
        s.bytes.len(),
        array(s.bytes.iter().map(|byte| format!("0x{byte:X}"))),
        s.reals.len(),
        array(s.reals.iter().map(|real| printed(*real))),
        s.mode,
        s.large.1,
        s.small.2,
        s.small.0,
        s.small.2,
        s.large.3,
        s.large.0,
    );
    line.extend(rest.into_bytes());
    line
}

#[test]
fn recorded_fields_equal_the_probed_arguments() -> Outcome {
    const THREADS: u64 = 8;
    const EACH: u64 = 100;
    own_process!();
    let place = place();
    let dir = place.path().join("trace");
    let seen: Arc<Mutex<BTreeMap<u64, Vec<u8>>>> = Arc::default();
    let plain = Arc::clone(&seen);
    let probe = register_trace_sample(move |number, s| {
        plain.lock().expect("not poisoned").insert(number, expected(number, s));
    })?;
    let session = Session::builder("extremes")
        .events("extremes:*")
        .channel(Channel::discard(4 << 20))
        .sink(CtfSink::create(&dir)?)
        .start()?;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for i in 0..EACH {
                    let number = thread * EACH + i;
                    tracepoint::trace!(sample(number, &sample_of(number)));
                    trace_blank(number);
                    trace_empty();
                }
            });
        }
    });
    let summary = session.stop()?;
    unregister_trace_sample(probe);
    assert_eq!(crate::common::event(&summary, "extremes:sample").recorded, THREADS * EACH);

    let output =
        Command::new("babeltrace2").arg(&dir).output().expect("babeltrace2 is installed (see scripts/setup.sh)");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "babeltrace2 reads it without a warning");
    assert!(output.status.success());
    let mut seen = Arc::into_inner(seen).expect("the probe is gone").into_inner()?;
    let (mut empty, mut blank, start) = (0, 0, b"{ number = ".as_slice());
    // Line breaks in a string are escaped, so each line is an event.
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Some(at) = line.windows(start.len()).position(|window| window == start) else {
            let line = String::from_utf8_lossy(line);
            if line.contains("extremes:blank: ") {
                assert!(line.ends_with(", text = \"\", path = \"\", _bytes_length = 0, bytes = [ ] }"), "{line}");
                blank += 1;
            } else {
                assert!(line.contains("extremes:empty: "), "{line}");
                empty += 1;
            }
            continue;
        };
        let digits: String =
            line[at + start.len()..].iter().map(|b| *b as char).take_while(char::is_ascii_digit).collect();
        let expected = seen.remove(&digits.parse()?).expect("an event that fired, once");
        assert_eq!(String::from_utf8_lossy(&line[at..]), String::from_utf8_lossy(&expected));
        assert_eq!(line[at..], expected);
    }
    assert_eq!((seen.len(), blank, empty), (0, THREADS * EACH, THREADS * EACH), "no event is missing");
    assert_balances(&dir);
    Ok(())
}

fn sample_of(number: u64) -> Sample {
    sample(usize::try_from(number).expect("small"))
}
