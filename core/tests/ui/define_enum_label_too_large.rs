tracepoint::define_trace! {
    x(n: u8) { state: enum u8 { Idle = 0, Run = 256 } = n }
}

fn main() {}
