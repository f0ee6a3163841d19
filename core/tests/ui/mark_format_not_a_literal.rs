const FORMAT: &str = "n %d";

fn main() {
    tracepoint::trace_mark!(x, FORMAT, 1);
}
