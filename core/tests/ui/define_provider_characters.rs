tracepoint::define_trace! {
    provider = "my provider";
    x(n: u32);
}

fn main() {}
