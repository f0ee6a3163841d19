tracepoint::define_trace! {
    x(n: u32) { file: path = &n }
}

fn main() {}
