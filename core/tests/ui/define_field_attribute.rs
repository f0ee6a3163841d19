tracepoint::define_trace! {
    x(n: u32) {
        #[cfg(unix)]
        a: u32 = n,
        #[cfg_attr(unix, doc = "b")]
        b: u32 = n,
        #[inline]
        c: u32 = n,
    }
}

fn main() {}
