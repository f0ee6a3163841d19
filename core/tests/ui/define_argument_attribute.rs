tracepoint::define_trace! {
    one(#[cfg(unix)] n: u32);
    two(#[allow(unused)] n: u32);
}

fn main() {}
