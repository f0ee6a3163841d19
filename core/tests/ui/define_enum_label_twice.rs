tracepoint::define_trace! {
    x(n: u8) { state: enum u8 { Idle = 0, Run = 1, Idle = 2 } = n }
}

fn main() {}
