tracepoint::define_trace! {
    class io(n: u32) { n: u32 = n }
    read: io(n: u32);
    write: io { n: u32 = n }
}

fn main() {}
