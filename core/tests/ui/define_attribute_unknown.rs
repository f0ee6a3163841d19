tracepoint::define_trace! {
    #[inline]
    x(n: u32);

    #[cfg_attr(unix, level(Info))]
    y(n: u32);

    #[expect(dead_code)]
    z(n: u32);
}

fn main() {}
