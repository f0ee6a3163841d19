tracepoint::define_trace! {
    class io(n: u32) { n: u32 = n }
    class io(n: u64) { n: u64 = n }
}

fn main() {}
