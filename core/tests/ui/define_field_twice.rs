tracepoint::define_trace! {
    x(n: u32) {
        a: u32 = n,
        /// The same again.
        a: u64 = 1,
    }
}

fn main() {}
