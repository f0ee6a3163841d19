tracepoint::define_trace! {
    x(n: u8) { state: enum u8 {} = n }
}

fn main() {}
