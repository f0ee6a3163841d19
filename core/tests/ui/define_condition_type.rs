tracepoint::define_trace! {
    x(n: u32) if n { n: u32 = n }
}

fn main() {}
