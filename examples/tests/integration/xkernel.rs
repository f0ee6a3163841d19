//! The protocol stack writes traces that agree with the counters appended to them.

use datatrace::DtReader;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn counters(file: &DtReader) -> BTreeMap<String, u64> {
    let tagged = file.tagged_postambles().map(Result::unwrap).find(|tagged| tagged.tag == *b"cntr").unwrap();
    let text = String::from_utf8(tagged.contents).unwrap();
    let pair = |line: &str| line.rsplit_once(' ').map(|(what, count)| (what.to_owned(), count.parse().unwrap()));
    text.lines().map(|line| pair(line).unwrap()).collect()
}

fn run(romfile: &str, place: &Path, seed: &str) -> (bool, String) {
    std::fs::write(place.join("rom"), romfile).unwrap();
    let mut command = Command::new(crate::common::program::built("xkernel"));
    let output = command.arg(place.join("rom")).arg(place).arg(seed).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn traces_agree_with_the_protocol_counters() {
    let place = tempfile::tempdir().unwrap();
    // Large enough for all entries.
    let romfile = "ip trace name=ip_trace logsize=10000 filesize=100;\nudp trace name=udp_trace logsize=100 filesize=1000;\n\
        tcp trace name=tcp_trace logsize=3000 filesize=100;";
    let (success, output) = run(romfile, place.path(), "42");
    assert!(success, "{output}");
    for (name, down) in
        [("ip", vec!["sent"]), ("udp", vec!["sent"]), ("tcp", vec!["sent", "sent again", "acknowledged"])]
    {
        let file = DtReader::open(&place.path().join(format!("{name}_trace.dt"))).unwrap();
        let counters = counters(&file);
        let format = file.format().unwrap().unwrap();
        let (mut ups, mut downs) = (0, 0);
        for entry in file.entries(format.size(), 0) {
            let entry = entry.unwrap();
            let way = format.values(&entry.bytes).find(|(field, _)| field.name == "way").unwrap().1;
            if way.to_string() == "0" { ups += 1 } else { downs += 1 }
        }
        assert_eq!(ups, counters["received"], "{name}");
        assert_eq!(downs, down.iter().map(|what| counters[*what]).sum::<u64>(), "{name}");
        assert!(ups > 100 && downs > ups, "{name}: the link loses some");
        assert!(output.contains(&format!("{name}: sent {}, received {ups}", counters["sent"])), "{output}");
    }
}

#[test]
fn the_romfile_names_the_traces_or_does_not() {
    let place = tempfile::tempdir().unwrap();
    let romfile = "tcp trace name=wire logsize=10000 filesize=100;\nudp trace logsize=10000 filesize=100;\n\
        udp trace name=second logsize=10000 filesize=100;";
    let (success, output) = run(romfile, place.path(), "7");
    assert!(success, "{output}");
    let files: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let traces: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|end| end == "dt")).collect();
    assert_eq!(traces.len(), 3, "{traces:?}");
    for path in traces {
        let file = DtReader::open(path).unwrap();
        let size = file.format().unwrap().unwrap().size();
        let entries = file.entries(size, 0).map(Result::unwrap).count() as u64;
        let counters = counters(&file);
        let events = ["received", "sent", "sent again", "acknowledged"].map(|what| counters.get(what).unwrap_or(&0));
        assert_eq!(entries, events.into_iter().sum::<u64>(), "{}", path.display());
    }
}

#[test]
fn a_protocol_without_an_option_line_is_not_traced() {
    let place = tempfile::tempdir().unwrap();
    let (success, output) = run("tcp trace name=tcp_trace logsize=1000 filesize=2;\n", place.path(), "7");
    assert!(success, "{output}");
    assert!(place.path().join("tcp_trace.dt").exists() && !place.path().join("ip_trace.dt").exists());
    let file = DtReader::open(&place.path().join("tcp_trace.dt")).unwrap();
    assert_eq!(file.slots().count(), 2, "it has gone round");
    let (success, output) = run("ip trace logsize=ten filesize=2;\n", place.path(), "7");
    assert!(!success);
    assert!(output.contains("rom: line 1, column 18: found `ten`; expected a number of bytes"), "{output}");
}
