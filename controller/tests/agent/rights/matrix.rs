//! Targets that have more rights, or have given them up, when their agents start.

use super::parts::is_told;
use super::place::Place;
use super::told::Told;
use super::{SHADOW, USER};
use crate::common::Outcome;

/// A row of the matrix.
struct Row {
    what: &'static str,
    /// The attributes of the program's file, and how it is started.
    attributes: &'static [&'static str],
    user: u32,
    group: u32,
    options: &'static [&'static str],
    /// Started by `capsh` with these options, instead of `setpriv` with those above.
    capsh: Option<&'static [&'static str]>,
    /// The commands for the process.
    told: &'static [&'static str],
    /// The answer of its agent: `done`, or the reason why there is none.
    agent: &'static str,
    /// The answers to its user, another user and root.
    expected: [&'static str; 3],
    /// The answer to a member of the group, if the process is started with that group. Programs that gain rights ignore it.
    member: Option<&'static str>,
}

const PLAIN: Row = Row {
    what: "plain",
    attributes: &[],
    user: USER,
    group: USER,
    options: &["--clear-groups"],
    capsh: None,
    told: &["start"],
    agent: "done",
    expected: ["controlled", "cannot be inspected", "belongs to user 64201"],
    member: Some("controlled"),
};

/// The target gains its rights before its agent starts.
const ROWS: &[Row] = &[
    PLAIN,
    Row {
        what: "not dumpable",
        told: &["not dumpable", "start"],
        agent: "it is not dumpable",
        expected: ["not dumpable"; 3],
        member: Some("not dumpable"),
        ..PLAIN
    },
    Row {
        what: "set-user-ID root",
        attributes: &["4755", "0", "0"],
        expected: ["cannot be inspected", "cannot be inspected", "controlled"],
        member: None,
        ..PLAIN
    },
    Row {
        what: "set-user-ID of another user",
        attributes: &["4755", "64202", "0"],
        agent: "users are 64201, 64202 and 64202",
        expected: ["users are 64201, 64202 and 64202"; 3],
        member: None,
        ..PLAIN
    },
    Row {
        what: "set-group-ID",
        attributes: &["2755", "0", "42"],
        agent: "groups are 64201, 42 and 42",
        expected: ["groups are 64201, 42 and 42"; 3],
        member: None,
        ..PLAIN
    },
    Row {
        what: "set-group-ID, and has taken the group for good and made itself dumpable",
        attributes: &["2755", "0", "42"],
        told: &["become the group", "dumpable", "start"],
        agent: "its group 42 is none of user 64201",
        expected: ["cannot be inspected", "cannot be inspected", "belongs to user 64201"],
        member: None,
        ..PLAIN
    },
    Row {
        what: "started with a group of others",
        group: SHADOW,
        agent: "its group 42 is none of user 64201",
        expected: ["cannot be inspected", "cannot be inspected", "belongs to user 64201"],
        member: None,
        ..PLAIN
    },
    Row {
        what: "file capability cap_dac_override",
        attributes: &["cap_dac_override+ep"],
        agent: "(cap_dac_override)",
        expected: ["(cap_dac_override)"; 3],
        member: None,
        ..PLAIN
    },
    Row {
        what: "file capability cap_net_bind_service",
        attributes: &["cap_net_bind_service+ep"],
        agent: "(cap_net_bind_service)",
        expected: ["(cap_net_bind_service)"; 3],
        member: None,
        ..PLAIN
    },
    Row {
        what: "ambient capability",
        options: &["--clear-groups", "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"],
        agent: "(cap_net_bind_service)",
        expected: ["(cap_net_bind_service)"; 3],
        member: Some("(cap_net_bind_service)"),
        ..PLAIN
    },
    Row {
        what: "ambient capability, dropped before the agent starts",
        options: &["--clear-groups", "--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service"],
        told: &["drop capabilities", "start"],
        // The first thread has kept them.
        expected: ["controlled", "(cap_net_bind_service)", "(cap_net_bind_service)"],
        ..PLAIN
    },
    Row {
        what: "capsh: ambient capability",
        capsh: Some(&[
            "--keep=1",
            "--gid=64201",
            "--uid=64201",
            "--inh=cap_net_bind_service",
            "--addamb=cap_net_bind_service",
        ]),
        agent: "(cap_net_bind_service)",
        expected: ["(cap_net_bind_service)"; 3],
        member: Some("(cap_net_bind_service)"),
        ..PLAIN
    },
    Row {
        what: "capsh: capability that only a program file could take up",
        capsh: Some(&["--keep=1", "--gid=64201", "--uid=64201", "--inh=cap_net_bind_service"]),
        ..PLAIN
    },
    Row {
        what: "capsh: the user, whom no program gives rights",
        capsh: Some(&["--secbits=0x2f", "--drop=all", "--gid=64201", "--uid=64201"]),
        ..PLAIN
    },
    Row {
        what: "capsh: root without capabilities",
        capsh: Some(&["--secbits=0x2f", "--drop=all", "--caps="]),
        expected: ["cannot be inspected", "cannot be inspected", "controlled"],
        // The shared directory belongs to the user by now, not to root.
        member: None,
        ..PLAIN
    },
    Row {
        what: "root, has become the user",
        user: 0,
        group: USER,
        told: &["become the user", "start"],
        agent: "it is not dumpable",
        expected: ["not dumpable"; 3],
        member: Some("not dumpable"),
        ..PLAIN
    },
    Row {
        what: "root, has become the user and made itself dumpable",
        user: 0,
        group: USER,
        told: &["become the user", "dumpable", "start"],
        ..PLAIN
    },
    Row {
        what: "root, one thread has become the user",
        user: 0,
        group: USER,
        told: &["become the user here", "start"],
        agent: "it is not dumpable",
        expected: ["cannot be inspected", "cannot be inspected", "is not traced"],
        member: Some("cannot be inspected"),
        ..PLAIN
    },
];

#[test]
fn a_process_with_more_rights_offers_no_control() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let mut place = Place::new()?;
    for row in ROWS {
        place.attribute(row.attributes)?;
        for shares in [false, true] {
            let (whos, expected) = match (shares, row.member) {
                (false, _) => (&["its user", "another user", "root"][..], &row.expected[..]),
                (true, Some(member)) => (&["a member"][..], &[member][..]),
                (true, None) => continue,
            };
            let mut options = row.capsh.unwrap_or(row.options).to_vec();
            let mut command = if row.capsh.is_some() {
                options.insert(0, if shares { "--groups=64210" } else { "--groups=" });
                place.by_capsh(&options, "target")
            } else {
                if shares {
                    options[0] = "--groups=64210";
                }
                place.as_user(row.user, row.group, &options, "target")
            };
            if shares {
                place.share(&mut command);
            }
            let mut target = Told::start(&mut command, &place.temp.path().join("target.txt"))?;
            let mut last = String::new();
            for line in row.told {
                last = target.tell(line)?;
            }
            assert!(
                last.contains(row.agent) && (row.agent == "done" || last.contains("cannot be controlled")),
                "{}: {last}",
                row.what
            );
            place.judge(row.what, &target, whos, expected)?;
        }
    }
    Ok(())
}
