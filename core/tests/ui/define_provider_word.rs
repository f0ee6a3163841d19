tracepoint::define_trace! {
    supplier = "one";
    x(n: u32);
}

fn main() {}
