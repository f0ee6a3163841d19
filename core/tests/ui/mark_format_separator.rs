fn main() {
    tracepoint::trace_mark!(x, "n %d" 1);
}
