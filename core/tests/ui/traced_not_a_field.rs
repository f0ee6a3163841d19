use tracepoint::traced;

struct Duration(i64);

#[traced(fields(wait, name))]
fn named(wait: Duration, name: &str) -> i64 {
    wait.0 + name.len() as i64
}

#[traced]
fn left_out(wait: Duration) -> i64 {
    wait.0
}

#[traced]
fn größe() {}

fn main() {
    named(Duration(1), "");
    left_out(Duration(1));
    größe();
}
