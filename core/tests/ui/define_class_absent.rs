tracepoint::define_trace! {
    read: io;
    class io(n: u32) { n: u32 = n }
}

fn main() {}
