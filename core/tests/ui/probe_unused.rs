#![deny(unused_must_use)]

tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    register_trace_x(|_, _| {}).unwrap();
    tracepoint::find("a:b").unwrap().register::<fn()>(|| {}).unwrap();
    trace_x_enabled();
}
