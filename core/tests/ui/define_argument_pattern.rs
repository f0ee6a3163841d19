tracepoint::define_trace! {
    tuple((a, b): (u32, u32));
    wildcard(_: u32);
    mutable(mut a: u32);
}

fn main() {}
