tracepoint::define_trace! {
    x;
    y { n: u32 = 1 }
}

fn main() {}
