//! The description of a tracepoint is readable before its first hit.

use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicUsize, Ordering};
use tracepoint::field::{Base, ByteOrder, EnumLabel, FieldType, IntegerType};
use tracepoint::{Level, Tracepoint, runtime::Argument};

const FIRST: i8 = 3;

mod inner {
    tracepoint::define_trace! {
        /// One line.
        default_provider(n: u32);
    }
}

/// The line above the block.
const LINE: u32 = line!();

tracepoint::define_trace! {
    provider = "listing";

    /// The first line.
    ///
    ///   The third, indented.
    #[level(DebugSystem)]
    everything(text: &str, n: Option<&'static [u8]>, p: *const u8) if n.is_some() && 1 < 2 {
        /// A name.
        text: str = text,
        base: hex u16 = 1,
        order: be i32 = 1,
        both: be oct u64 = 1,
        file: path = text,
        digest: hex [u8; FIRST.unsigned_abs() as usize] = [1, 2, 3],
        data: [f32] = &[],
        flag: bool = true,
        size: usize = 1,
        state: enum i8 { Negative = -1, Next, "quoted \"label\"", First = FIRST, After } = 0,
    }

    #[doc = "Not a comment."] plain();

    class io(fd: i32) { fd: i32 = fd }
    /// A read.
    #[level(Emerg)] read: io; write: io;
}

fn find(name: &str) -> &'static Tracepoint {
    tracepoint::find(name).unwrap()
}

#[test]
fn names_and_providers() {
    assert_eq!(find("listing:everything").full_name(), "listing:everything");
    let crate_named = find("integration:default_provider");
    assert_eq!(crate_named.provider(), env!("CARGO_CRATE_NAME"));
    assert_eq!(crate_named.location().module, "integration::listing::inner");
}

#[test]
fn docs_and_levels() {
    let everything = find("listing:everything");
    assert_eq!(everything.doc(), "The first line.\n\n  The third, indented.");
    assert_eq!(everything.level(), Level::DebugSystem);
    assert_eq!(find("listing:plain").doc(), "Not a comment.");
    assert_eq!(find("listing:plain").level(), Level::DebugLine);
    assert_eq!((find("listing:read").doc(), find("listing:read").level()), ("A read.", Level::Emerg));
    assert_eq!((find("listing:write").doc(), find("listing:write").level()), ("", Level::DebugLine));
}

#[test]
fn locations() {
    let line = |name: &str| find(name).location().line;
    assert_eq!(line("listing:everything"), LINE + 9);
    assert_eq!(line("listing:plain"), LINE + 23);
    assert_eq!(line("listing:read"), LINE + 27);
    assert_eq!(line("listing:write"), LINE + 27);
    let location = find("listing:everything").location();
    assert!(location.file.ends_with("tests/integration/listing.rs"));
    assert_eq!((location.package, location.version), ("tracepoint", env!("CARGO_PKG_VERSION")));
    assert_eq!(find("listing:everything").marker().unwrap().location(), location);
}

#[test]
fn arguments_and_conditions() {
    let everything = find("listing:everything");
    let arguments = [("text", "&str"), ("n", "Option<&'static [u8]>"), ("p", "*const u8")];
    assert_eq!(everything.arguments(), arguments.map(|(name, ty)| Argument { name, ty }));
    assert_eq!(everything.condition(), "n.is_some() && 1 < 2");
    assert_eq!(find("listing:plain").arguments(), []);
    assert_eq!(find("listing:plain").condition(), "");
}

#[test]
fn fields() {
    let marker = find("listing:everything").marker().unwrap();
    let listed: Vec<String> = marker.fields().iter().map(|field| format!("{}: {}", field.name, field.ty)).collect();
    assert_eq!(
        listed,
        [
            "text: str",
            "base: hex u16",
            "order: be i32",
            "both: oct be u64",
            "file: path",
            "digest: [hex u8; 3]",
            "data: [f32]",
            "flag: bool",
            "size: u64",
            "state: enum i8 { Negative = -1, Next = 0, quoted \"label\" = 1, First = 3, After = 4 }",
        ]
    );
    assert_eq!(marker.fields()[0].doc, "A name.");
    assert_eq!(marker.fields()[1].doc, "");
    let integer = IntegerType { bits: 64, signed: false, base: Base::Octal, order: ByteOrder::Big };
    assert_eq!(marker.fields()[3].ty, FieldType::Integer(integer));
    let FieldType::Enum { labels, .. } = marker.fields()[9].ty else { panic!("an enumeration") };
    assert_eq!(labels[2], EnumLabel { name: "quoted \"label\"", value: 1 });
    assert!(find("listing:plain").marker().is_none());
}

#[test]
fn the_format_string_follows_from_the_fields() {
    assert_eq!(
        find("listing:everything").marker().unwrap().format(),
        "text %s base %#hx order %d both %#lo file %s digest [%#hhx] data [%f] flag %d size %lu state %hhd"
    );
    assert_eq!(find("listing:read").marker().unwrap().format(), "fd %d");
}

#[test]
fn markers_are_listed() {
    let marker = tracepoint::runtime::markers().find(|marker| marker.name() == "written_by_hand").unwrap();
    assert_eq!(marker.full_name(), "integration:written_by_hand");
    assert_eq!((marker.format(), marker.level()), ("n %5d, text: %-10s", Level::DebugLine));
    assert_eq!(marker.fields().iter().map(|field| field.name).collect::<Vec<_>>(), ["n", "text"]);
    assert_eq!(marker.location().line, line!() + 5);
    assert!(!marker.is_of_tracepoint());
    // The line of the marker's name.
    let hit = || {
        tracepoint::trace_mark! {
            written_by_hand,
            "n %5d, text: %-10s",
            1,
            "a"
        };
    };
    hit();
}

#[test]
fn each_is_listed_once() {
    let tracepoints: HashSet<_> = tracepoint::runtime::tracepoints().map(std::ptr::from_ref).collect();
    assert_eq!(tracepoint::runtime::tracepoints().len(), tracepoints.len());
    let markers: HashSet<_> = tracepoint::runtime::markers().map(std::ptr::from_ref).collect();
    assert_eq!(tracepoint::runtime::markers().len(), markers.len());
}

/// The numbers of tracepoints and markers that a constructor saw which runs before the constructor of the library.
#[cfg(target_os = "linux")]
static SEEN_EARLY: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

// SAFETY: the section holds addresses of functions without arguments, which the dynamic linker calls.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array.00101")]
static EARLY: extern "C" fn() = {
    extern "C" fn count() {
        SEEN_EARLY[0].store(tracepoint::runtime::tracepoints().len(), Ordering::Relaxed);
        SEEN_EARLY[1].store(tracepoint::runtime::markers().len(), Ordering::Relaxed);
    }
    count
};

#[cfg(target_os = "linux")]
#[test]
fn constructors_of_the_program_can_list() {
    let seen = SEEN_EARLY.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert_eq!(seen, [tracepoint::runtime::tracepoints().len(), tracepoint::runtime::markers().len()]);
}
