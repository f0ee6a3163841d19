tracepoint::define_trace! {
    x(a: u32)
    y(a: u32);
    class io(n: u32) { n: u32 = n }
    z: io
}

fn main() {}
