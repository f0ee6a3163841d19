tracepoint::define_trace! {
    on_float(n: f64) { n: hex f64 = n }
    on_text(n: &str) { n: oct str = n }
    on_bool(n: bool) { n: bin bool = n }
    on_enum(n: u8) { n: hex enum u8 { A } = n }
    on_elements(n: &[f32]) { n: [hex f32] = n }
}

fn main() {}
