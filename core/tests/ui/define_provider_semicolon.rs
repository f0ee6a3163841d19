tracepoint::define_trace! {
    provider = "mine"
    x(n: u32);
}

fn main() {}
