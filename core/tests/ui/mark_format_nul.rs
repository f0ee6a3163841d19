fn main() {
    tracepoint::trace_mark!(x, "n\0 %d", 1);
}
