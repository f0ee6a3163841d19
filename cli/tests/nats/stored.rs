//! The traces stored below the directories of collectors.

use crate::programs::{TRACECTL, tracectl};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The traces below a directory; chunks of a trace count separately.
pub(crate) fn traces(directory: &Path) -> Vec<PathBuf> {
    if directory.join("metadata").exists() {
        return vec![directory.to_owned()];
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = entries.filter(|path| path.is_dir()).flat_map(|path| traces(&path)).collect();
    found.sort();
    found
}

/// Counts each event of a test program in the traces, by thread and number, as read by babeltrace2.
pub(crate) fn events(directories: &[&Path]) -> BTreeMap<(u64, u64), usize> {
    let mut events = BTreeMap::new();
    for trace in directories.iter().flat_map(|directory| traces(directory)) {
        let output = Command::new("babeltrace2").arg(&trace).output().expect("babeltrace2 runs");
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {messages}", trace.display());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let fields = line.rsplit_once("{ thread = ").and_then(|(_, fields)| fields.strip_suffix(" }")).expect(line);
            let (thread, n) = fields.split_once(", n = ").expect(line);
            *events.entry((thread.parse().expect(line), n.parse().expect(line))).or_default() += 1;
        }
    }
    events
}

/// Asserts that each event of both threads is stored once.
pub(crate) fn assert_once(directories: &[&Path], each: u64, told: &str) {
    let events = events(directories);
    let twice = events.iter().filter(|(_, count)| **count > 1).count();
    let missing = (0..2).flat_map(|thread| (0..each).map(move |n| (thread, n)));
    let missing: Vec<_> = missing.filter(|event| !events.contains_key(event)).collect();
    assert!(
        missing.is_empty() && twice == 0,
        "{told}: {} missing from {:?} on, {twice} twice",
        missing.len(),
        missing.first()
    );
    assert_eq!(events.len() as u64, each * 2, "{told}");
}

/// Asserts that `tracectl verify` finds no fault in any single trace, nor in all of them together.
pub(crate) fn assert_verified(place: &Path, directories: &[&Path]) {
    let whole = directories.iter().map(|directory| directory.to_path_buf());
    for trace in directories.iter().flat_map(|directory| traces(directory)).chain(whole) {
        let verified = tracectl(place, &["verify", trace.to_str().unwrap()]);
        let [out, errors] = [&verified.stdout, &verified.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(verified.status.success(), "{}: {out}{errors}", trace.display());
    }
}

/// The events counted in accounts as written to the present traces, and as lost by the network.
pub(crate) fn accounts(directories: &[&Path]) -> (u64, u64) {
    let (mut written, mut network) = (0, 0);
    for trace in directories.iter().flat_map(|directory| traces(directory)) {
        let text = fs::read_to_string(trace.join(".account/account.json")).expect("an account");
        let account: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(account["complete"], true, "{}: {text}", trace.display());
        for stream in account["channels"].as_array().unwrap().iter().flat_map(|it| it["streams"].as_array().unwrap()) {
            let count = |value: &Value| value.as_u64().unwrap_or_default();
            written += count(&stream["written"]) - count(&stream["before"]["written"]);
            network += count(&stream["sink_lost"]["network"]);
        }
    }
    (written, network)
}

/// The streams in the account of the last chunk of the only trace: channel, instance, recorded, written, and losses by reason.
pub(crate) fn streams(directory: &Path) -> Vec<String> {
    let last = traces(directory).pop().expect("a trace");
    let account: Value = serde_json::from_slice(&fs::read(last.join(".account/account.json")).unwrap()).unwrap();
    let of = |channel: &Value| {
        let streams = channel["streams"].as_array().unwrap().iter();
        streams
            .map(|it| {
                format!(
                    "{} {} {} {} {} {}",
                    channel["id"], it["instance"], it["recorded"], it["written"], it["discarded"], it["sink_lost"]
                )
            })
            .collect::<Vec<_>>()
    };
    let mut streams: Vec<_> = account["channels"].as_array().unwrap().iter().flat_map(of).collect();
    streams.sort();
    assert!(!streams.is_empty(), "{account}");
    streams
}

/// Moves the chunks of several collectors into one directory, which then forms one trace.
pub(crate) fn together(directories: &[&Path], into: &Path) {
    fs::create_dir_all(into).unwrap();
    for trace in directories.iter().flat_map(|directory| traces(directory)) {
        let to = into.join(trace.file_name().unwrap());
        let copied = Command::new("cp").arg("-r").arg(&trace).arg(&to).status().unwrap();
        assert!(copied.success() && Path::new(TRACECTL).exists());
    }
}
