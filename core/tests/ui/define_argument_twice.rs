tracepoint::define_trace! {
    x(n: u32, m: u32, n: u64);
}

fn main() {}
