tracepoint::define_trace! {
    on_array(n: [u16; 2]) { n: be [u16; 2] = n }
    on_element(n: &[u16]) { n: [be u16] = n }
    on_float(n: f64) { n: be f64 = n }
    on_text(n: &str) { n: be str = n }
}

fn main() {}
