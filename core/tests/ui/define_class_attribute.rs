tracepoint::define_trace! {
    /// Documented.
    #[level(Info)]
    class io(n: u32) { n: u32 = n }
    read: io;
}

fn main() {}
