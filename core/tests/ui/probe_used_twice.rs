tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    let probe = register_trace_x(|_, _| {}).unwrap();
    unregister_trace_x(probe);
    unregister_trace_x(probe);
}
