fn main() {
    tracepoint::trace_mark!(twice, "n %d n %d", 1, 2);
}
