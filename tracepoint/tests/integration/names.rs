//! Names that are keywords of Rust or of TSDL.

use crate::common::Recorded;

tracepoint::define_trace! {
    provider = "names-1.0_x";

    r#match(r#type: u32, r#fn: &str) if r#type > 0 { r#type: u32 = r#type, fn: str = r#fn }

    keywords(n: u32) {
        struct: u32 = n, integer: u32 = n, string: u32 = n, type: u32 = n, event: u32 = n, stream: u32 = n,
        trace: u32 = n, clock: u32 = n, env: u32 = n, enum: u32 = n, str: u32 = n, path: u32 = n, self: u32 = n,
        hex: hex u32 = n, be: be u32 = n, class: u32 = n, provider: u32 = n, _hidden: u32 = n, CamelCase: u32 = n,
    }

    class(n: u32) { n: u32 = n }
    provider(n: u32) { n: u32 = n }
    event(n: u32) { n: u32 = n }
    struct_(n: u32) { n: u32 = n }

    class class(n: u8) { n: u8 = n }
    of_class: class;
}

#[test]
fn raw_identifiers() {
    let recorded = Recorded::of("names-1.0_x:match");
    tracepoint::trace!(r#match(1, "f"));
    trace_match(2, "g");
    assert_eq!(recorded.all(), [["1", "f"], ["2", "g"]]);
    let found = tracepoint::find("names-1.0_x:match").unwrap();
    assert_eq!(found.arguments().iter().map(|argument| argument.name).collect::<Vec<_>>(), ["type", "fn"]);
    let probe = register_trace_match(|_, _| {}).unwrap();
    assert!(trace_match_enabled());
    unregister_trace_match(probe);
    let marked = Recorded::of_marker("loop");
    tracepoint::trace_mark!(r#loop, "type %d", 1);
    assert_eq!(marked.last(), ["1"]);
}

#[test]
fn keywords_as_fields() {
    let recorded = Recorded::of("names-1.0_x:keywords");
    tracepoint::trace!(keywords(1));
    assert_eq!(recorded.last(), ["1"; 19]);
    let fields = tracepoint::find("names-1.0_x:keywords").unwrap().marker().unwrap().fields();
    assert_eq!(fields[0].name, "struct");
    assert_eq!(fields[12].name, "self");
}

#[test]
fn keywords_of_define_trace_as_names() {
    let recorded =
        ["class", "provider", "event", "struct_", "of_class"].map(|name| Recorded::of(&format!("names-1.0_x:{name}")));
    tracepoint::trace!(class(1));
    tracepoint::trace!(provider(2));
    tracepoint::trace!(event(3));
    tracepoint::trace!(struct_(4));
    tracepoint::trace!(of_class(5));
    assert_eq!(recorded.map(|recorded| recorded.last()), [["1"], ["2"], ["3"], ["4"], ["5"]]);
}

#[test]
fn nearest_names_come_first() {
    use tracepoint_core::internal::nearest_names;

    let names = ["sched:sched_switch", "sched:sched_migrate", "net:recv"];
    assert_eq!(nearest_names("sched:sched_swich", names), ["sched:sched_switch"]);
    assert_eq!(nearest_names("recv", names), ["net:recv"]);
    assert_eq!(nearest_names("net:rcev", names), ["net:recv"], "two letters swapped");
    assert!(nearest_names("sched:exit", names).is_empty(), "an equal provider does not make names similar");
    assert!(nearest_names("zzz", names).is_empty());
}
