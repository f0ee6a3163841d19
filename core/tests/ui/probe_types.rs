tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn function(_: u32, _: &String) {}

fn main() {
    let _types = register_trace_x(|n: u64, text: &str| drop((n, text)));
    let _function = register_trace_x(function);
}
