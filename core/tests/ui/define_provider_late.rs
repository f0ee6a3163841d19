tracepoint::define_trace! {
    x(n: u32);
    provider = "late";
}

fn main() {}
