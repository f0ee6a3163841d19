tracepoint::define_trace! {
    x(n: u32) { a: u32, b: u32 = n }
    y(n: u32) { n }
    z(n: u32) { a: u32 = }
}

fn main() {}
