use tracepoint::traced;

#[traced]
struct Shop;

#[traced]
const fn constant() {}

trait Answer {
    #[traced]
    fn answer(&self);
}

fn main() {}
