tracepoint::define_trace! {
    x(n: u32) { a: Pid = n, b: (u8, u8) = n, c: u32 = n, d: &str = n }
}

fn main() {}
