tracepoint::define_trace! {
    str(n: u32);
}

fn main() {}
