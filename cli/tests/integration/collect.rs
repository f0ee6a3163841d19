//! `tracectl collect`: its addresses, its metrics, its end, and failures. The stored traces are tested in `collector/tests`.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn collect(output: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
    command.args(["collect", "-o"]).arg(output).args(options).env("NO_COLOR", "1");
    command
}

const FREE: [&str; 8] =
    ["--control", "127.0.0.1:0", "--data", "127.0.0.1:0", "--live", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];

#[test]
fn addresses_come_first_and_counts_last() {
    let place = tempfile::tempdir().unwrap();
    let mut command = collect(&place.path().join("out"), &FREE);
    let mut child = command.arg("--json").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["type"], "listening");
    for name in ["control", "data", "live"] {
        TcpStream::connect(first[name].as_str().unwrap()).unwrap();
    }
    let mut metrics = TcpStream::connect(first["metrics"].as_str().unwrap()).unwrap();
    metrics.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut text = String::new();
    metrics.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("\ntracepoint_collector_sessions 0\n"), "{text}");
    assert!(text.contains("\ntracepoint_collector_packets_not_stored_total{reason=\"late\"} 0\n"), "{text}");
    // A parser of OpenMetrics uses the name of a counter without `_total` as the name of its family.
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let mut families: Vec<_> = types.map(|(name, _)| name.strip_suffix("_total").unwrap_or(name)).collect();
    families.sort_unstable();
    let twice: Vec<_> = families.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(families.len() > 10 && twice.is_empty(), "{twice:?}");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let last: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((last["type"].as_str(), last["counts"]["connections"].as_u64()), (Some("collected"), Some(4)));
    assert!(child.wait().unwrap().success());
}

/// A running collector with state below `place`: its first line, and its messages until then.
struct Started {
    child: Child,
    first: Value,
    said: String,
}

fn start(place: &Path, address: &str, options: &[&str]) -> Started {
    let mut command = collect(&place.join("out"), options);
    for option in ["--control", "--data", "--live"] {
        command.args([option, address]);
    }
    let errors = place.join("errors");
    command.arg("--json").env("XDG_STATE_HOME", place.join("state")).env_remove("STATE_DIRECTORY");
    command.stderr(std::fs::File::create(&errors).unwrap());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let first: Value = serde_json::from_str(&line).unwrap();
    let says = || std::fs::read_to_string(&errors).unwrap();
    while !first["key_file"].is_null() && !says().contains("key") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Started { child, first, said: says() }
}

impl Started {
    /// Lists the sessions with `tracectl view`: the exit code and the messages.
    fn view(&self, options: &[&str]) -> (Option<i32>, String) {
        let port = self.first["live"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracectl"));
        let output = command.args(["view", &format!("net://127.0.0.1:{port}")]).args(options).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_collector_for_other_machines_makes_a_key_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("state/tracepoint/collector.key");
    let file = path.to_str().unwrap();
    // A start that fails must not make a key, because it could not print it.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut busy = collect(&place.path().join("out"), &["--live", "0.0.0.0:0"]);
    busy.args(["--control", &taken.local_addr().unwrap().to_string()]);
    let state = place.path().join("state");
    let output = busy.env("XDG_STATE_HOME", &state).env_remove("STATE_DIRECTORY").output().unwrap();
    assert!(output.status.code() == Some(3) && !path.exists(), "{}", String::from_utf8_lossy(&output.stderr));
    let started = start(place.path(), "0.0.0.0:0", &[]);
    let key = std::fs::read_to_string(&path).unwrap();
    let key = key.trim_end();
    assert!(key.len() == 64 && key.bytes().all(|digit| digit.is_ascii_hexdigit()), "{key}");
    assert_eq!((started.first["key_file"].as_str(), path.metadata().unwrap().mode() & 0o777), (Some(file), 0o600));
    for told in [
        format!("made a key for senders and viewers, in {file}; which `cat {file}` shows"),
        "(umask 77; echo KEY >collector.key)".to_owned(),
        "tracectl record --stream ".to_owned(),
        " --key-file collector.key".to_owned(),
    ] {
        assert!(started.said.contains(&told), "{told}: {}", started.said);
    }
    assert!(!started.said.contains(key), "what is no terminal may be a log: {}", started.said);
    let (code, said) = started.view(&[]);
    assert!(
        code == Some(3) && said.contains("it asks for a shared key: copy the file that `tracectl collect` names"),
        "{said}"
    );
    assert_eq!(started.view(&["--key-file", file]), (Some(0), String::new()));
    drop(started);
    // It is used again, and not printed again.
    let again = start(place.path(), "0.0.0.0:0", &["--allow-stock-viewers=127.0.0.0/8,192.0.2.1", "--allow-stock"]);
    assert!(again.said.contains(&format!("asks senders and viewers for the key in {file}")), "{}", again.said);
    assert!(!again.said.contains(key) && std::fs::read_to_string(&path).unwrap().contains(key));
    assert_eq!(again.view(&[]), (Some(0), String::new()), "it is allowed");
    drop(again);
    for (address, options) in [("0.0.0.0:0", &["--no-key"][..]), ("127.0.0.1:0", &[])] {
        let open = start(place.path(), address, options);
        assert!(open.first["key_file"].is_null() && !open.said.contains("key"), "{}", open.said);
        assert_eq!(open.view(&[]), (Some(0), String::new()));
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut command = collect(&place.path().join("out"), &["--live", "0.0.0.0:0"]);
    let output =
        command.env("XDG_STATE_HOME", place.path().join("state")).env_remove("STATE_DIRECTORY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && said.contains(&format!("`chmod 600 {file}` keeps them out")), "{said}");
    let output = collect(place.path(), &["--allow-stock=10.0.0.0/8,home"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("`home` is no address and no network"), "{said}");
}

#[test]
fn a_key_that_was_made_is_printed_on_a_terminal() {
    let place = tempfile::tempdir().unwrap();
    let collect = collect(&place.path().join("out"), &FREE[2..]);
    let words = [collect.get_program()].into_iter().chain(collect.get_args());
    let words: Vec<_> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let mut terminal = Command::new("script");
    let command = format!("echo $$; exec {} --control 0.0.0.0:0", words.join(" "));
    // As of a unit with two state directories.
    let directories = ["state", "other"].map(|name| place.path().join(name));
    terminal
        .args(["-q", "-c", &command, "/dev/null"])
        .env("STATE_DIRECTORY", std::env::join_paths(&directories).unwrap());
    let mut terminal = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(terminal.stdout.take().unwrap()).lines().map(Result::unwrap);
    let process = lines.next().unwrap();
    let said: Vec<_> = lines.by_ref().take_while(|line| !line.contains("tracectl view net://")).collect();
    Command::new("kill").args(["-INT", process.trim()]).status().unwrap();
    let rest = lines.collect::<Vec<_>>();
    assert!(terminal.wait().unwrap().success(), "{said:?} {rest:?}");
    let key = std::fs::read_to_string(directories[0].join("collector.key")).unwrap();
    let told = format!("(umask 77; echo {} >collector.key)", key.trim_end());
    assert!(said.iter().any(|line| line.contains(&told)), "{said:?}");
    assert!(!directories[1].exists());
}

#[test]
fn failures_name_the_address_and_the_mend() {
    let place = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = collect(place.path(), &["--control", &address]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3));
    assert!(message.contains(&format!("cannot listen on {address} for control connections: ")), "{message}");
    assert!(message.contains("; end the other program (perhaps lttng-relayd), or choose other ports"), "{message}");
    let file = place.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let output = collect(&file, &FREE).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot create "));
}
