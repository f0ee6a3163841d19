struct Task;

tracepoint::define_trace! {
    unknown(id: u64) { id, status }
    typed(task: &Task) { task }
    wide(n: u128) { n }
}

fn main() {}
