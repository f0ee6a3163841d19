tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    let kept = std::sync::Mutex::new(Vec::new());
    let _probe = register_trace_x(move |_, text| kept.lock().unwrap().push(text));
}
