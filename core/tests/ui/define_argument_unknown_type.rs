tracepoint::define_trace! {
    x(n: Missing);
}

fn main() {}
