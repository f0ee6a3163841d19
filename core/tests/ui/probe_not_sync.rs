tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    let calls = std::cell::Cell::new(0);
    let _probe = register_trace_x(move |_, _| calls.set(calls.get() + 1));
}
