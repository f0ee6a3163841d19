/// # Safety
///
/// None.
unsafe fn secret(n: u32) -> u32 {
    n
}

tracepoint::define_trace! {
    x(n: u32) { a: u32 = secret(n) }
}

fn main() {}
