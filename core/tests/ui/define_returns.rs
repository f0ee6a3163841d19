tracepoint::define_trace! {
    x(n: u32) -> u32;
}

fn main() {}
