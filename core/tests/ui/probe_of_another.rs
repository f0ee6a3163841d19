tracepoint::define_trace! {
    x(n: u32, text: &str);
}

tracepoint::define_trace! {
    y(n: u32, text: &str);
}

fn main() {
    let probe = register_trace_x(|_, _| {}).unwrap();
    unregister_trace_y(probe);
}
