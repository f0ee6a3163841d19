#[derive(tracepoint::TraceEnum)]
enum Data {
    Empty,
    Full(u8),
}

#[derive(tracepoint::TraceEnum)]
struct Mode;

#[derive(tracepoint::TraceEnum)]
enum Never {}

#[derive(tracepoint::TraceEnum)]
#[trace_enum(krate = tracepoint)]
enum Other {
    One,
}

fn main() {}
