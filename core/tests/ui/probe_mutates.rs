tracepoint::define_trace! {
    x(n: u32, text: &str);
}

fn main() {
    let mut seen = Vec::new();
    let _probe = register_trace_x(move |n, _| seen.push(n));
}
