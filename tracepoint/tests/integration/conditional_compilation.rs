//! `#[cfg]` on a tracepoint removes all that it generates.

tracepoint::define_trace! {
    provider = "cfg";

    #[cfg(any())]
    chosen(n: NoSuchType) { n: u32 = n.no_such_field }

    #[cfg(not(any()))]
    chosen(n: u32) { n: u32 = n }

    #[cfg(any())]
    absent(n: u32) { n: u32 = n }

    /// Documented between two switches.
    #[cfg(all())]
    #[cfg(not(any()))]
    #[level(Info)]
    present(n: u32);
}

// The names of removed tracepoints can be used for other items.
#[expect(non_camel_case_types)]
struct absent;

fn trace_absent() -> absent {
    absent
}

fn register_trace_absent() {}

fn unregister_trace_absent() {}

#[test]
fn cfg_removes_items_and_table_entries() {
    let _: absent = trace_absent();
    register_trace_absent();
    unregister_trace_absent();
    let mut names: Vec<String> = tracepoint::runtime::tracepoints()
        .filter(|t| t.provider() == "cfg")
        .map(tracepoint::Tracepoint::full_name)
        .collect();
    names.sort();
    assert_eq!(names, ["cfg:chosen", "cfg:present"]);
    let markers = tracepoint::runtime::markers().filter(|marker| marker.provider() == "cfg");
    assert_eq!(markers.map(tracepoint::Marker::full_name).collect::<Vec<_>>(), ["cfg:chosen"]);
    trace_chosen(1_u32);
    tracepoint::trace!(present(1));
}
