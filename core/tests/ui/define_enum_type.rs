tracepoint::define_trace! {
    x(n: u32) { state: enum u8 { Idle = 0 } = n }
}

fn main() {}
