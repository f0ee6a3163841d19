struct Silent;

tracepoint::define_trace! {
    x(s: &Silent) { a: display = s }
    y(s: &Silent) { a: debug(64) = s }
    z(n: u32) { a: Duration = n }
    w(s: &Silent) { a: enum Silent = *s }
}

fn main() {}
