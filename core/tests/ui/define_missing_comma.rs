tracepoint::define_trace! {
    x(a: u32 b: u32) { a: u32 = a b: u32 = b }
}

fn main() {}
