//! Replaces the README's table of costs, and the table of processors in `docs/costs.md`, by the figures of that page. `scripts/figures.sh` runs it.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::Path;
use tracepoint_book::figures;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = root.join("README.md");
    let page = root.join("docs/costs.md");
    let costs = figures::put_by_processor(&fs::read_to_string(&page)?)?;
    fs::write(&page, &costs)?;
    fs::write(&readme, figures::put(&fs::read_to_string(&readme)?, &costs)?)?;
    Ok(())
}
