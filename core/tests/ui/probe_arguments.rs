tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    let _few = register_trace_x(|n| drop(n));
    let _many = register_trace_x(|n, text, more| drop((n, text, more)));
}
