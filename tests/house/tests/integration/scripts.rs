//! The scripts reject unknown arguments, check the disk that cargo uses, and are described.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tracepoint_house::root;

/// Runs bash without cargo: a command that is not refused fails, and builds nothing.
fn bash(arguments: &[&str], target: Option<&str>) -> Output {
    let mut command = Command::new("bash");
    command.args(arguments).current_dir(root()).env("PATH", "/usr/bin:/bin").env_remove("CARGO_TARGET_DIR");
    command.envs(target.map(|target| ("CARGO_TARGET_DIR", target))).output().expect("bash runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn words_that_a_script_does_not_act_on_are_refused() {
    let of_one_option = ["chaos", "costs", "kills", "matrix", "models", "service", "setup", "soak"];
    let of_none =
        ["abort", "book", "flag-sites", "helgrind", "msrv", "new-program", "packages", "portable", "programs"];
    let own = |name: &&str| {
        ["--wrong", "--long further", "--picture further"].map(|words| format!("scripts/{name}.sh {words}"))
    };
    let with_steps = [
        "ci.sh --list x",
        "ci.sh --wrong",
        "ci.sh --long --wrong",
        "ci.sh budgets --long",
        "deb.sh --wrong",
        "debian-packages.sh --wrong x",
        "declared-rust.sh --wrong",
        "systems.sh --wrong",
        "test.sh --list x",
        "test.sh --quick lint",
        "test.sh -p tracepoint-core lint",
        "test.sh lint --quick",
    ];
    let with_steps = with_steps.iter().map(|words| format!("scripts/{words}"));
    for words in of_one_option.iter().chain(&of_none).flat_map(own).chain(with_steps) {
        let output = bash(&words.split(' ').collect::<Vec<_>>(), None);
        let errors = text(&output.stderr);
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(2), ""), "{words}: {errors}");
        assert!(!errors.is_empty(), "{words}");
    }
}

#[test]
fn a_step_of_the_long_mode_says_how_to_run_it() {
    let output = bash(&["scripts/ci.sh", "soak"], None);
    let errors = text(&output.stderr);
    assert!(errors.contains("--long soak") && !errors.contains("there is no step"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_disk_is_that_of_the_target_directory() {
    let obstacle = |target| text(&bash(&["-c", ". scripts/steps.sh; obstacle 100000000"], target).stdout);
    let checkout = root().canonicalize().expect("the checkout");
    assert!(obstacle(None).contains(&format!(" are free in {}: ", checkout.display())), "{}", obstacle(None));
    let other = obstacle(Some("/dev/shm/not-there/target"));
    assert!(other.contains(" are free in /dev/shm: "), "{other}");
}

#[test]
fn what_earlier_steps_have_built_makes_room() {
    let run = ". scripts/steps.sh; own=$(mktemp -d); free_space() { [ -d $own ] && echo 2097152 || echo 4194304; }; \
               step --builds $own first true; step --disk 3 second true; step --disk 5 third true; finish";
    let output = bash(&["-c", run], None);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("removed, because the disk has no room: /"), "{errors}");
    assert!(
        errors.contains("needs 5 GiB of disk, and 4 are free") && errors.contains("2 passed, 0 failed, 1 not run"),
        "{errors}"
    );
}

#[test]
fn the_page_has_all_scripts_and_says_which_are_no_ordinary_steps() {
    let page = fs::read_to_string(root().join("scripts/README.md")).expect("the page");
    let files =
        fs::read_dir(root().join("scripts")).expect("the scripts").map(|entry| entry.expect("an entry").file_name());
    for name in files
        .map(|name| name.into_string().expect("UTF-8"))
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "sh"))
    {
        assert!(page.contains(&format!("`{name}`")), "{name} is not in scripts/README.md");
    }
    for line in text(&bash(&["scripts/ci.sh", "--list"], None).stdout)
        .lines()
        .filter(|line| line.ends_with("(with --long alone)"))
    {
        let script = line.split_whitespace().find_map(|word| word.strip_prefix("scripts/")).expect("a script");
        let row = page.lines().find(|row| row.starts_with(&format!("| `{script}` |"))).expect("its row");
        assert!(row.contains("step of `ci.sh --long`"), "{row}");
    }
}
