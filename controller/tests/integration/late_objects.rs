//! Objects that are loaded while a session selects their events: the constructor of an object wakes the agent, which enables its events.

use std::ffi::CString;
use std::path::Path;
use std::process::Command;
use std::ptr::{from_ref, null};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};
use tracepoint_controller::Controller;
use tracepoint_core::__macro_support::{Key, MarkerParts, ValuesType, register_object, unregister_object};
use tracepoint_core::{Level, Location, Marker};
use tracepoint_run_dir::RunDir;
use tracepoint_session::{Agent, Channel, SessionError};
use tracepoint_session_spec::{Rule, SessionSpec, State};

tracepoint_core::define_trace! {
    provider = "late_host";
    here(n: u64) { n: u64 = n }
}

enum NoValues {}

impl ValuesType for NoValues {
    type Values<'a> = ();
}

static KEYS: [Key; 2] = [const { Key::new() }; 2];
static MARKERS: [Marker; 2] = [marker("first", &KEYS[0]), marker("second", &KEYS[1])];
static LISTS: [[AtomicPtr<Marker>; 1]; 2] = [list(&MARKERS[0]), list(&MARKERS[1])];

const fn list(marker: &'static Marker) -> [AtomicPtr<Marker>; 1] {
    [AtomicPtr::new(from_ref(marker).cast_mut())]
}

const fn marker(name: &'static str, key: &'static Key) -> Marker {
    let location = Location { package: "late", version: "", module: "", file: "", line: 0 };
    let fields = &[];
    let parts =
        MarkerParts { provider: "late_object", name, level: Level::Info, fields, format: "", doc: "", location };
    Marker::new::<NoValues>(parts, key, None)
}

/// The description of a linked object, as the assembler lays it out.
type Object = [*const (); 19];

/// Registers an object without sites and with the markers of this list, like its constructor.
fn load(list: Option<&'static [AtomicPtr<Marker>; 1]>) -> *mut Object {
    let mut description = [null::<()>(); 19];
    if let Some(list) = list {
        let range = list.as_ptr_range();
        (description[5], description[6]) = (range.start.cast(), range.end.cast());
        assert!(!list[0].load(Ordering::Relaxed).is_null());
    }
    let object = Box::into_raw(Box::new(description));
    // SAFETY: laid out as the assembler does, with a table of references to markers; it is alive until the process ends.
    unsafe { register_object(object.cast()) };
    object
}

/// A shared object, whose constructor calls the function at this address with its description.
const SOURCE: &str = r#"
#include <stdlib.h>
static void *description[19];
__attribute__((constructor)) static void begin(void) {
    ((void (*)(void *))strtoull(getenv("TEST_CONSTRUCTOR"), 0, 10))(description);
}
"#;

/// Inside `dlopen`, which holds the lock of the dynamic linker.
extern "C" fn construct(object: *mut Object) {
    let range = LISTS[0].as_ptr_range();
    // SAFETY: a static of the shared object, which nothing else uses yet.
    unsafe {
        (*object)[5] = range.start.cast();
        (*object)[6] = range.end.cast();
        register_object(object.cast());
    }
}

fn build(dir: &Path) -> Result<CString, Box<dyn std::error::Error>> {
    let (source, library) = (dir.join("late.c"), dir.join("late.so"));
    std::fs::write(&source, SOURCE)?;
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status()?;
    assert!(built.success(), "cc builds it");
    Ok(CString::new(library.into_os_string().into_encoded_bytes())?)
}

fn until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn events_of_an_object_are_switched_on_when_it_is_loaded() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let temp = tempfile::tempdir_in("/dev/shm")?;
    let library = build(temp.path())?;
    // SAFETY: the process has no other thread that uses its environment.
    unsafe { std::env::set_var("TEST_CONSTRUCTOR", (construct as *const () as usize).to_string()) };
    // Another object, such as the library that contains the core: further ones may be loaded.
    load(None);
    let run_dir = temp.path().join("run");
    let agent = Agent::start_in(&RunDir::at(&run_dir)?)?;
    let controller = Controller::at(RunDir::at(&run_dir)?)?;
    let mut spec = SessionSpec::new();
    spec.channel = (&Channel::overwrite(1 << 16)).into();
    spec.add_rule(&Rule::new("late_host:*"))?;
    spec.add_rule(&Rule::new("late_object:*"))?;
    let unmatched = controller.unmatched(&spec)?;
    assert_eq!(unmatched.iter().map(|rule| rule.rule.as_str()).collect::<Vec<_>>(), ["late_object:*"]);
    spec.state = State::Active;
    let session = controller.create("waits", &spec)?;
    let waited = session.wait(spec.generation, Duration::from_secs(60))?;
    assert_eq!((waited.acks[0].events, waited.silent.len()), (1, 0));

    // SAFETY: its constructor is ours.
    let loaded = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW) };
    assert!(!loaded.is_null());
    // Nothing else wakes the agent.
    until(|| MARKERS[0].is_on());
    // SAFETY: it stays loaded, because the agent has listed its events.
    unsafe { libc::dlclose(loaded) };
    assert!(controller.unmatched(&spec)?.is_empty(), "it is listed");
    until(|| session.acks().is_ok_and(|acks| acks[0].events == 2));
    session.destroy(Duration::from_secs(60), true)?;
    assert!(!MARKERS[0].is_on());
    drop(agent);
    Ok(())
}

/// A session in code has room for their events, or the rule is refused: it is never added without its events.
#[test]
fn a_rule_for_a_later_object_is_added_with_its_events_or_refused() -> Result<(), Box<dyn std::error::Error>> {
    own_process!();
    let other = load(None);
    let builder = || tracepoint_session::Session::builder("in_code").events("late_host:*").in_memory();
    let builder = || builder().channel(Channel::overwrite(1 << 16));
    let (wide, narrow) = (builder().start()?, builder().max_events(1).start()?);
    assert!(matches!(wide.enable("late_object:*"), Err(SessionError::NoMatch { .. })));
    load(Some(&LISTS[1]));
    wide.enable("late_object:*")?;
    assert!(MARKERS[1].is_on());
    drop(wide);
    let refused = narrow.enable("late_object:*").expect_err("it has one id");
    assert!(matches!(&refused, SessionError::NoIds { rule, .. } if rule.contains("late_object:*")), "{refused}");
    assert!(
        refused.to_string().contains("late_object:second is left out") && refused.to_string().contains("max_events"),
        "{refused}"
    );
    assert!(!MARKERS[1].is_on() && narrow.spec().rules().count() == 1);
    // SAFETY: it is registered.
    unsafe { unregister_object(other.cast()) };
    Ok(())
}
