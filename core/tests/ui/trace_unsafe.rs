tracepoint::define_trace! {
    x(n: u32, text: &str);
}

unsafe fn secret() -> u32 {
    1
}

fn main() {
    tracepoint::trace!(x(secret(), "a"));
    tracepoint::trace_mark!(marked, "n %u", secret());
}
