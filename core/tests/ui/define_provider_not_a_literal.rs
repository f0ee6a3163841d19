const PROVIDER: &str = "mine";

tracepoint::define_trace! {
    provider = PROVIDER;
    x(n: u32);
}

fn main() {}
