use tracepoint::traced;

#[traced(skip(absent), error)]
fn unknown_option(id: u64) {}

#[traced(skip(absent))]
fn unknown_argument(id: u64) {}

#[traced(fields(map, len, text: str))]
fn fields(map: &[String]) {}

#[traced(fields(map, len))]
fn types(map: &[String]) {}

#[traced(fields(id), skip(id))]
fn both(id: u64) {}

#[traced(level = Loud)]
fn level() {}

#[traced(name = "two words")]
fn name() {}

#[traced(err)]
fn nothing_returned() {}

fn main() {}
