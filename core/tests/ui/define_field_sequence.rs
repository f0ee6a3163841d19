tracepoint::define_trace! {
    x(n: u32) { data: [u8] = n }
}

fn main() {}
