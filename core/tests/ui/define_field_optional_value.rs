tracepoint::define_trace! {
    x(n: Option<u32>, m: u32) { a: Option<u64> = n, b: Option<u32> = m, c: Option<str> = n }
}

fn main() {}
