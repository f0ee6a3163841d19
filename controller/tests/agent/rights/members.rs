//! Attempts of group members to make other users' processes open files: by sessions that they have written, and by descriptions that they
//! have moved.

use super::parts::{Said, is_told, own_run_dir, recording};
use super::place::Place;
use super::told::Told;
use super::{GROUP, OTHER, USER};
use crate::common::{Outcome, names};
use crate::traced::{PATIENCE, spec};
use std::error::Error;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracepoint_controller::Controller;
use tracepoint_controller::trigger::{FireRequest, Listener, Occurrence, trigger_report};
use tracepoint_run_dir::RunDir;
use tracepoint_session_spec::{Rule, SinkSpec, State, TriggerAction, TriggerCondition, TriggerSpec};

/// Further commands of a controller. `make DIRECTORY`: creates a stopped session with an output there, and triggers that start it, and that
/// run a program and start it; `start NAME`, `stop NAME` and `look NAME`: starts or stops a session, or makes all processes read it;
/// `fire ID`: acts on a trigger in this process; `send ID`: makes the listener act on it; `listen`: is the listener.
pub(super) fn act(line: &str) -> Option<Said> {
    Some(match line.split_once(' ').unwrap_or((line, "")) {
        ("make", directory) => make(Path::new(directory)),
        ("start", name) => change(name, Some(State::Active)),
        ("stop", name) => change(name, Some(State::Stopped)),
        ("look", name) => change(name, None),
        ("fire", id) => fire(id),
        ("send", id) => send(id),
        ("listen", _) => listen(),
        _ => return None,
    })
}

fn controller() -> Result<Controller, Box<dyn Error>> {
    Ok(Controller::at(RunDir::at(&own_run_dir())?)?)
}

fn make(directory: &Path) -> Said {
    let mut wanted = spec(&["traced:tick"], &[SinkSpec::text(directory.join("kept.txt")).into()]);
    wanted.state = State::Stopped;
    wanted.add_trigger(
        &TriggerSpec::new(TriggerCondition::Event(Rule::new("traced:tick")), TriggerAction::Start).named("start"),
    )?;
    let touch = ["/usr/bin/touch".to_owned(), directory.join("ran").display().to_string()];
    wanted.add_trigger(
        &TriggerSpec::new(TriggerCondition::CoreDump, TriggerAction::Run(touch.to_vec()))
            .then(TriggerAction::Start)
            .named("run"),
    )?;
    let controller = controller()?;
    recording(&controller.create("kept", &wanted)?)
}

fn change(name: &str, state: Option<State>) -> Said {
    let controller = controller()?;
    let session = controller.session(name)?;
    session.change("change", |spec| {
        spec.state = state.unwrap_or(spec.state);
        Ok(())
    })?;
    session.refresh(PATIENCE)?;
    recording(&session)
}

fn request(id: &str) -> FireRequest {
    FireRequest::new("kept", id, Occurrence::new(&TriggerCondition::CoreDump, 0, SystemTime::now()))
}

fn fire(id: &str) -> Said {
    Ok(format!("{:?}", trigger_report(&own_run_dir(), &request(id))?))
}

fn send(id: &str) -> Said {
    let mut socket = UnixStream::connect(own_run_dir().join("notify"))?;
    socket.write_all(&request(id).to_message().ok_or("too long")?)?;
    let mut answer = [0; 4];
    socket.read_exact(&mut answer)?;
    #[expect(clippy::host_endian_bytes, reason = "answers have the byte order of the host")]
    Ok(i32::from_ne_bytes(answer).to_string())
}

fn listen() -> Said {
    let mut listener = Listener::bind(RunDir::at(&own_run_dir())?)?;
    let (end, ended) = UnixStream::pair()?;
    std::thread::spawn(move || {
        let _until_the_process_ends = end;
        listener.serve(ended.as_fd(), |_| {})
    });
    Ok("done".to_owned())
}

/// A target owned by the user, and a directory that only the user can write to.
struct Shared {
    place: Place,
    out: PathBuf,
    _target: Told,
}

impl Shared {
    fn new() -> Result<Self, Box<dyn Error>> {
        let place = Place::new()?;
        let mut command = place.as_user(USER, USER, &["--groups=64210"], "target");
        place.share(&mut command);
        let mut target = Told::start(&mut command, &place.temp.path().join("target.txt"))?;
        assert_eq!(target.tell("start")?, "done");
        let out = place.shared().join("out");
        fs::create_dir(&out)?;
        fs::set_permissions(&out, Permissions::from_mode(0o700))?;
        chown(&out, Some(USER), Some(USER))?;
        Ok(Self { place, out, _target: target })
    }

    /// Starts a controller of that user. Listeners check the group of a process, which is the first one.
    fn controller(&self, user: u32, group: u32) -> Result<Told, Box<dyn Error>> {
        let mut command = self.place.as_user(user, group, &["--groups=64210"], "controller");
        self.place.share(&mut command);
        Told::start(&mut command, &self.place.temp.path().join(format!("{user}.txt")))
    }

    fn description(&self, session: &str) -> PathBuf {
        self.place.shared().join("run/sessions").join(session).join("session.toml")
    }
}

/// The message to the user and to root, whose processes would have opened the files that the member has written.
const REFUSED: &str = "user 64202 has written or can change its description";

#[test]
fn others_do_not_take_over_what_a_member_has_named() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let shared = Shared::new()?;
    let mut member = shared.controller(OTHER, OTHER)?;
    let (mut user, mut root) = (shared.controller(USER, USER)?, shared.controller(0, 0)?);
    // The event of the trigger that starts the session occurs continuously.
    let said = member.tell(&format!("make {}", shared.out.display()))?;
    assert!(said.starts_with("0 recording: ") && said.contains(REFUSED), "{said}");
    for (who, told, lines) in
        [("root", &mut root, &["start kept"][..]), ("user", &mut user, &["start kept", "fire start", "fire run"])]
    {
        for line in lines {
            let said = told.tell(line)?;
            assert!(said.contains(REFUSED), "{who}, {line}: {said}");
            assert_eq!(fs::metadata(shared.description("kept"))?.uid(), OTHER, "{who}, {line}");
        }
    }
    assert_eq!(names(&shared.out), [""; 0]);
    assert_eq!(user.tell("end")?, "done");
    assert!(!shared.description("kept").exists());
    Ok(())
}

#[test]
fn a_listener_opens_nothing_that_a_member_has_named() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let shared = Shared::new()?;
    let mut member = shared.controller(OTHER, GROUP)?;
    member.tell(&format!("make {}", shared.out.display()))?;
    for who in [USER, 0] {
        let mut listener = shared.controller(who, who)?;
        assert_eq!(listener.tell("listen")?, "done");
        for trigger in ["start", "run"] {
            assert_eq!(member.tell(&format!("send {trigger}"))?, "-13", "{who}: {trigger}");
            assert_eq!(fs::metadata(shared.description("kept"))?.uid(), OTHER, "{who}: {trigger}");
        }
    }
    assert_eq!(names(&shared.out), [""; 0]);
    Ok(())
}

/// A member can rename files of others in the run directory, and directories that contain them.
#[test]
fn a_description_is_for_one_session() -> Outcome {
    if is_told()? {
        return Ok(());
    }
    let shared = Shared::new()?;
    let (mut member, mut user) = (shared.controller(OTHER, OTHER)?, shared.controller(USER, USER)?);
    assert_eq!(user.tell(&format!("begin {}", shared.out.display()))?, "1 recording:");
    let sessions = shared.place.shared().join("run/sessions");
    let moved = "its description was written for another session";
    fs::rename(sessions.join("kept"), sessions.join("moved"))?;
    for (who, told, line) in [("member", &mut member, "look moved"), ("user", &mut user, "look moved")] {
        let said = told.tell(line)?;
        assert!(said.starts_with("0 recording: ") && said.contains(moved), "{who}: {said}");
    }
    // A stopped session.
    fs::rename(sessions.join("moved"), sessions.join("kept"))?;
    assert_eq!(user.tell("look kept")?, "1 recording:");
    assert_eq!(user.tell("stop kept")?, "1 recording:");
    fs::rename(sessions.join("kept"), sessions.join("moved"))?;
    let said = user.tell("start moved")?;
    assert!(said.contains(moved), "{said}");
    Ok(())
}
