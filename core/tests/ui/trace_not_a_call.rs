tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    tracepoint::trace!(x);
    tracepoint::trace!();
    tracepoint::trace!("text");
    tracepoint::trace!(x(1, "a"); x(2, "b"));
}
