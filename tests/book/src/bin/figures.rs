//! Replaces the README's table of costs by the figures of `docs/costs.md`. `scripts/figures.sh` runs it.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::Path;
use tracepoint_book::figures;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = root.join("README.md");
    let text = figures::put(&fs::read_to_string(&readme)?, &fs::read_to_string(root.join("docs/costs.md"))?)?;
    fs::write(&readme, text)?;
    Ok(())
}
