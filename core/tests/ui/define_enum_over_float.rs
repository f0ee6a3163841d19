tracepoint::define_trace! {
    x(n: f64) { state: enum f64 { Idle = 0 } = n }
}

fn main() {}
