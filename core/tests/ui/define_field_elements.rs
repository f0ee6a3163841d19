tracepoint::define_trace! {
    texts(n: &[&str]) { n: [str] = n }
    paths(n: &[&str]) { n: [path; 2] = n }
    nothing(n: &[u8]) { n: [] = n }
    more(n: &[u8]) { n: [u8; 2, 3] = n }
}

fn main() {}
