fn main() {
    tracepoint::trace_mark!(star, "n %*d", 5, 1);
}
