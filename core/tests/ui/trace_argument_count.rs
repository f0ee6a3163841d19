tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    tracepoint::trace!(x(1));
    tracepoint::trace!(x(1, "a", 2));
    trace_x(1);
}
