//! Runs a Python decoder of `tests/decoders`, with the packages that `scripts/setup.sh` installs.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Decodes a file to JSON; `None` if the decoder is missing and may be.
pub(crate) fn decode(decoder: &str, file: &Path) -> Option<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let packages = root.join("../target/tools/decoders");
    if !packages.join("google/protobuf").is_dir() {
        crate::skip::skip("the decoders from PyPI are not installed", "Run scripts/setup.sh");
        return None;
    }
    let script = root.join("tests/decoders").join(decoder);
    let output =
        Command::new("python3").arg(script).arg(file).env("PYTHONPATH", packages).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}
