use tracepoint::traced;

#[traced(err)]
fn no_result() -> u64 {
    7
}

struct Silent;

#[traced(err)]
async fn no_text() -> Result<u64, Silent> {
    Err(Silent)
}

#[traced(fields(len: u64 = text.len()))]
fn wrong_type(text: &str) {
    let _ = text;
}

#[traced]
fn wrong_body() -> u64 {
    "seven"
}

fn main() {}
