//! The bin `systems` can measure every figure of every system available here. The figures are not checked, because a test machine is not idle.

use std::path::Path;
use std::process::Command;
use tracepoint_peers::systems::Report;

#[test]
fn every_system_has_every_figure() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tracectl");
    let built = Command::new(env!("CARGO"))
        .args(["build", "-q", "-p", "tracectl", "--target-dir"])
        .arg(&target)
        .current_dir(workspace)
        .status()
        .expect("cargo starts");
    assert!(built.success(), "tracectl is built");
    let output = Command::new(env!("CARGO_BIN_EXE_systems"))
        .args(["--quick", "--json", "--tracectl"])
        .arg(target.join("debug/tracectl"))
        .output()
        .expect("systems was built for this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).expect("the JSON of a run");
    let figures = [
        "steady-1",
        "steady-2",
        "flat",
        "flat-lost",
        "burst",
        "wakes-program",
        "wakes-consumer",
        "rss",
        "pss",
        "consumer-pss",
        "shared",
        "program-10000",
        "consumer-10000",
        "program-100000",
        "consumer-100000",
        "program-1000000",
        "consumer-1000000",
    ];
    for system in ["session", "record", "lttng", "dial9"] {
        if let Some(absent) = report.absent.iter().find(|absent| absent.system == system) {
            println!("{system}: not measured: {}", absent.reason);
            continue;
        }
        for figure in figures {
            assert!(report.median(figure, system).is_some_and(f64::is_finite), "{system} has no {figure}: {report:#?}");
        }
        assert!(report.median("flat", system) > Some(0.0), "{system} kept nothing");
    }
    assert!(report.median("flat", "floor") > Some(0.0), "the floor wrote nothing");
}
