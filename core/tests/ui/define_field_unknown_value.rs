tracepoint::define_trace! {
    x(n: u32) { a: u32 = m }
}

fn main() {}
