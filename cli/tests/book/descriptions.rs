//! Each session description in a page is accepted by `tracectl load`.

use crate::pages;
use std::process::Command;

/// Prepended to a partial description.
const HEAD: &str = r#"
format = "tracepoint-session"
version = 1
id = "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"
generation = 1
state = "stopped"
[channel]
policy = "overwrite"
"#;

#[test]
fn descriptions_of_sessions_are_loaded() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut loaded = 0;
    for page in pages::all() {
        let blocks = pages::blocks(&page);
        let is_description = |text: &str| text.contains("[[");
        for block in blocks.iter().filter(|block| block.language == "toml" && is_description(&block.text)) {
            if block.not_run().is_some() {
                continue;
            }
            let head = if block.text.starts_with("format = ") { "" } else { HEAD };
            let file = place.path().join("session.toml");
            std::fs::write(&file, format!("{head}{}", block.text)).unwrap();
            let mut load = Command::new(env!("CARGO_BIN_EXE_tracectl"));
            let load = load.args(["load", &format!("page{loaded}")]).arg(&file);
            let output = load.env("TRACEPOINT_RUN_DIR", place.path().join("run")).output().unwrap();
            assert!(output.status.success(), "{page}:{}: {}", block.line, String::from_utf8_lossy(&output.stderr));
            loaded += 1;
        }
    }
    assert!(loaded >= 2, "{loaded} descriptions were found");
}
