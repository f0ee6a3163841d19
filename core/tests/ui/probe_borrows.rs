tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    let calls = std::sync::atomic::AtomicU32::new(0);
    let _probe = register_trace_x(|_, _| drop(calls.load(std::sync::atomic::Ordering::Relaxed)));
}
