tracepoint::define_trace! {
    provider = "";
    x(n: u32);
}

fn main() {}
