tracepoint::define_trace! {
    x(a: u128, b: i128) { a: u128 = a, b: i128 = b }
}

fn main() {}
