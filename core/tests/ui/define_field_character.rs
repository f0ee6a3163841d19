tracepoint::define_trace! {
    x(n: char) { n: char = n }
}

fn main() {}
