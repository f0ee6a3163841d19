tracepoint::define_trace! {
    provider = "one";
    provider = "two";
    x(n: u32);
}

fn main() {}
