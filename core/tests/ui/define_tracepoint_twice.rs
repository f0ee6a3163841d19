tracepoint::define_trace! {
    x(n: u32);
    x(n: u64);
}

fn main() {}
