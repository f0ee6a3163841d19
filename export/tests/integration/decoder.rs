//! Runs a decoder of `tests/decoders` by Python, with the packages that `scripts/setup.sh` installs.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What a decoder says of a file, in JSON; `None` if it is not installed and that is allowed.
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
