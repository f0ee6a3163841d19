tracepoint::define_trace! {
    x(digest: [u8; 16]) { digest: [u8; 32] = digest }
}

fn main() {}
