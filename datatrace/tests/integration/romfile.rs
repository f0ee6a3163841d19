//! Romfiles: parsed lines, errors with their positions, and the created objects.

use datatrace::romfile::{LoadError, RomEntry, load_options_from, parse};
use datatrace::{close_all, get_trace_object};
use proptest::prelude::*;
use std::fs;

fn entry(protocol: &str, name: Option<&str>, logsize: u32, filesize: u32, line: usize) -> RomEntry {
    RomEntry { protocol: protocol.into(), name: name.map(Into::into), logsize, filesize, line }
}

#[test]
fn entries_comments_blank_lines_and_other_facilities() {
    let text = "\
# what is traced
    ip    trace   name=ip_trace   logsize=10000   filesize=3;

tcp\ttrace filesize=16 logsize=65536 ;  # no name, and in another order
eth address 08:00:2b:0a:0b:0c
vnet   # nothing
trace
udp trace name=a=b logsize=1 filesize=1;\r
ip tracer name=x;
ip route = whatever ;;; logsize
";
    let entries: Vec<_> = parse(text).map(Result::unwrap).collect();
    assert_eq!(
        entries,
        [
            entry("ip", Some("ip_trace"), 10000, 3, 2),
            entry("tcp", None, 65536, 16, 4),
            entry("udp", Some("a=b"), 1, 1, 8),
        ]
    );
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    const OPTIONS: &str = "`name=NAME`, `logsize=BYTES` or `filesize=BUFFERS`";
    let cases = [
        ("ip trace logsize=10 filesize=3", 31, format!("expected {OPTIONS}, or `;` at the end of the entry")),
        ("ip trace # none", 9, format!("expected {OPTIONS}, or `;` at the end of the entry")),
        ("ip trace;", 9, "expected `logsize=BYTES` before the `;`".into()),
        ("ip trace logsize=10;", 20, "expected `filesize=BUFFERS` before the `;`".into()),
        (
            "ip trace logsize=10 filesize=3; more",
            33,
            "found `more` behind the `;`; expected the end of the line".into(),
        ),
        ("ip trace logsize=0 filesize=3;", 18, "found 0; expected at least 1 of bytes".into()),
        ("ip trace logsize=10 filesize=-3;", 30, "found `-3`; expected a number of buffers in decimal digits".into()),
        ("ip trace logsize=+9 filesize=3;", 18, "found `+9`; expected a number of bytes in decimal digits".into()),
        ("ip trace logsize= filesize=3;", 18, "found ``; expected a number of bytes in decimal digits".into()),
        (
            "ip trace logsize=99999999999 filesize=3;",
            18,
            "found 99999999999; expected a number of bytes below 2^32".into(),
        ),
        ("ip trace name= logsize=10 filesize=3;", 15, "expected a name; without `name=` the object has none".into()),
        ("ip trace logsize=1 logsize=1 filesize=3;", 20, "`logsize=` is given twice".into()),
        ("ip trace ü=1 size=10;", 10, format!("there is no option `ü`; expected {OPTIONS}")),
        ("ip trace big;", 10, format!("found `big`; expected {OPTIONS}, or `;`")),
    ];
    for (line, column, reason) in cases {
        let text = format!("# one\n{line}\n");
        let errors: Vec<_> = parse(&text).map(Result::unwrap_err).collect();
        assert_eq!(errors.len(), 1, "{line}");
        assert_eq!(errors[0].to_string(), format!("line 2, column {column}: {reason}"), "{line}");
        assert_eq!(errors[0].protocol, "ip");
    }
}

#[test]
fn a_protocol_gets_only_its_own_objects_and_errors() {
    let (_alone, place) = crate::object::alone();
    let romfile = place.path().join("rom");
    let text = "ip trace name=ip_in logsize=100 filesize=3;\ntcp trace nonsense\nip trace logsize=50 filesize=1;\n\
        udp trace name=udp logsize=300000000 filesize=1;\nudp trace name=a/b logsize=10 filesize=1;\n";
    fs::write(&romfile, text).unwrap();
    let load = |protocol| load_options_from(&romfile, protocol, place.path());
    let objects = load("ip").unwrap();
    assert_eq!(objects.iter().map(|object| object.name()).collect::<Vec<_>>(), [Some("ip_in"), None]);
    assert_eq!(objects.iter().map(|object| object.header().unwrap().buffer_size()).collect::<Vec<_>>(), [100, 50]);
    drop(objects);
    get_trace_object("ip_in").expect("the list keeps it").trace1(1u8).unwrap();

    let error = load("tcp").unwrap_err();
    assert!(matches!(error, LoadError::Line { .. }));
    assert!(error.to_string().ends_with("rom: line 2, column 11: found `nonsense`; expected `name=NAME`, `logsize=BYTES` or `filesize=BUFFERS`, or `;`"), "{error}");
    let error = load("udp").unwrap_err();
    assert!(error.to_string().contains("rom: line 4: logsize (bytes of a buffer) is 300000000"), "{error}");
    assert!(get_trace_object("udp").is_none());
    assert!(load("ether").unwrap().is_empty());

    let missing = load_options_from(&place.path().join("missing"), "ip", place.path()).unwrap_err();
    assert!(matches!(missing, LoadError::Io { .. }));
    assert!(missing.to_string().ends_with("; name a romfile, or make this one"), "{missing}");
    fs::write(&romfile, b"ip trace\n a\xFFb").unwrap();
    assert!(load("ip").unwrap_err().to_string().ends_with("rom: line 2, column 3: expected text in UTF-8"));
    fs::write(&romfile, vec![b'\n'; 2 << 20]).unwrap();
    assert!(load("ip").unwrap_err().to_string().ends_with("a romfile of more than 1048576 bytes is not read"));
    close_all().unwrap();
}

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn options_round_trip(
        protocol in "[a-z][a-z0-9]{0,9}",
        name in proptest::option::of("[a-zA-Z0-9_.-]{1,20}"),
        logsize in 1u32..,
        filesize in 1u32..,
        blanks in "[ \t]{1,3}",
        comment in "( #.{0,10})?",
    ) {
        let option = name.as_ref().map_or_else(String::new, |name| format!("name={name}{blanks}"));
        let text = format!("{protocol}{blanks}trace{blanks}{option}logsize={logsize}{blanks}filesize={filesize};{comment}");
        let entries: Vec<_> = parse(&text).collect();
        prop_assert_eq!(entries, [Ok(entry(&protocol, name.as_deref(), logsize, filesize, 1))]);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "((ip|trace|name=|logsize=|filesize=|[0-9]+|[;# \n=]|.){0,5} ?){0,12}") {
        for line in parse(&text) {
            match line {
                Ok(entry) => prop_assert!(entry.logsize > 0 && entry.filesize > 0),
                Err(error) => {
                    let line = text.lines().nth(error.line - 1).unwrap();
                    prop_assert!(error.column <= line.chars().count() + 1 && error.column > 0);
                }
            }
        }
    }
}
