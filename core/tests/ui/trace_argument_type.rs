tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    tracepoint::trace!(x(1u64, "a"));
    tracepoint::trace!(x(1, String::new()));
    trace_x("a", "a");
}
