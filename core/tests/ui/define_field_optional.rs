tracepoint::define_trace! {
    x(n: Option<u32>, m: u32) {
        a: Option = n,
        b: Option<[u8]> = None,
        c: Option<Option<u8>> = None,
        d: Option<u64 = n,
        e: Arc<u32> = n,
    }
}

fn main() {}
