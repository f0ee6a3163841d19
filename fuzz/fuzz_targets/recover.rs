//! The directory of a process: the first part is the file of the main stream in its output, the last one a ring. A recovery that is reported as
//! complete balances.

#![no_main]

mod directory;

use std::fs;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tracepoint_reader::{recover, verify};

fuzz_target!(|bytes: &[u8]| {
    let Some([metadata, kept, ring]) = directory::parts(bytes) else {
        return;
    };
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let place = place.join(format!("recover-{}", std::process::id()));
    look(&place, metadata, kept, ring);
    fs::remove_dir_all(&place).unwrap();
});

fn look(place: &Path, metadata: &[u8], kept: &[u8], ring: &[u8]) {
    let [process, output, out] = ["process", "kept", "out"].map(|name| place.join(name));
    for directory in [&process, &output] {
        fs::create_dir_all(directory).unwrap();
    }
    fs::write(process.join("metadata"), metadata).unwrap();
    fs::write(process.join("outputs"), format!("ctf {}\n", output.display())).unwrap();
    fs::write(process.join("0-0.ring"), ring).unwrap();
    fs::write(output.join("channel0_0"), kept).unwrap();
    if let Ok(recovered) = recover(&process, &out) {
        let report = verify(&out).unwrap();
        let wrong: String = report.failures().map(|check| check.rule).collect();
        assert!(!recovered.is_complete() || wrong.is_empty(), "{wrong}: {recovered:#?}");
        assert!(!wrong.contains(['B', 'I', 'J', 'L', 'N', 'P']), "{wrong}: {recovered:#?}");
    }
}
