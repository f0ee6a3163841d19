fn main() {
    tracepoint::trace_mark!(few, "a %d b %d", 1);
    tracepoint::trace_mark!(many, "a %d", 1, 2, 3);
    tracepoint::trace_mark!(none, "nothing", 1);
}
