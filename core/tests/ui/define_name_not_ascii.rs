tracepoint::define_trace! {
    größe(n: u32);
    x(größe: u32);
    y(n: u32) { größe: u32 = n }
}

fn main() {}
