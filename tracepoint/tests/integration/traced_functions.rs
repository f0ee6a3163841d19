//! `#[traced]` on all kinds of functions: the types of the arguments decide which are fields, and the function does the same as without the
//! attribute.
#![allow(
    clippy::boxed_local,
    clippy::needless_pass_by_value,
    clippy::redundant_pattern,
    clippy::too_many_arguments,
    clippy::toplevel_ref_arg,
    clippy::trivially_copy_pass_by_ref,
    clippy::unused_async,
    reason = "a function may be so"
)]

use crate::common::Recorded;
use crate::future::run;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use tracepoint::traced;

/// Returns the names of an event's fields, after those of each span.
fn fields(event: &str) -> Vec<&'static str> {
    let marker = tracepoint::find(event).unwrap().marker().unwrap();
    marker.fields()[2..].iter().map(|field| field.name).collect()
}

/// Types with the names of others.
mod others {
    pub(super) struct Duration(pub(super) i64);
    pub(super) struct Path<'a>(pub(super) &'a str);
    pub(super) struct Uuid(pub(super) u128);
    pub(super) struct String(pub(super) Vec);
    pub(super) struct Vec(pub(super) u8);
    pub(super) struct Option;
    pub(super) enum Result {
        Fine,
    }

    #[tracepoint::traced(provider = "traced", name = "of_others")]
    pub(super) fn call(path: &Path<'_>, text: String, id: Uuid, list: &Vec, none: Option, size: u64) -> Result {
        let _ = (path.0, text.0.0, id.0, list.0, none, size);
        Result::Fine
    }
}

#[traced(provider = "traced", name = "mixed")]
fn mixed(
    theirs: others::Duration,
    path: others::Path,
    ours: std::time::Duration,
    file: &std::path::Path,
    texts: &[String],
    n: &&u64,
    span_id: u64,
) -> i64 {
    let _ = (path.0, ours, file, texts, n, span_id);
    theirs.0
}

#[test]
fn a_field_is_what_has_the_type_and_not_only_its_name() {
    let (mixed_events, others_events) = (Recorded::of("traced:mixed_begin"), Recorded::of("traced:of_others_begin"));
    let second = std::time::Duration::from_secs(1);
    assert_eq!(mixed(others::Duration(-3), others::Path("p"), second, "f".as_ref(), &[], &&7, 1), -3);
    assert_eq!(fields("traced:mixed_begin"), ["ours", "file", "n"]);
    assert_eq!(mixed_events.last()[2..], ["1000000000", "f", "7"]);
    let marker = tracepoint::find("traced:mixed_begin").unwrap().marker().unwrap();
    assert_eq!(marker.format(), "span_id %lu parent_id %lu ours %lu file %s n %lu");

    let list = others::Vec(4);
    others::call(&others::Path("p"), others::String(others::Vec(1)), others::Uuid(2), &list, others::Option, 9);
    assert_eq!(fields("traced:of_others_begin"), ["size"]);
    assert_eq!(others_events.last()[2..], ["9"]);
}

#[test]
fn types_of_functions_may_have_any_name() {
    struct String(u8);
    type Option = u64;

    #[traced(provider = "traced", name = "local_types")]
    fn call(text: String, option: Option, real: &str) -> usize {
        usize::from(text.0) + usize::try_from(option).unwrap() + real.len()
    }

    let events = Recorded::of("traced:local_types_begin");
    assert_eq!(call(String(1), 2, "abc"), 6);
    assert_eq!(events.last()[2..], ["abc"]);
}

struct Table<K, Duration> {
    key: K,
    limit: Duration,
}

impl<K: Copy + Into<u64>, Limit: Copy> Table<K, Limit> {
    #[traced(provider = "traced", name = "of_generics")]
    fn get<String: AsRef<str>, const N: usize>(
        &self,
        key: K,
        text: String,
        limit: Limit,
        n: [u8; N],
        size: u32,
    ) -> u64 {
        let _ = (limit, n, size);
        self.key.into() + key.into() + text.as_ref().len() as u64
    }
}

trait Clock {
    type Duration: Copy;

    #[traced(provider = "traced", name = "of_associated")]
    fn wait(&self, duration: Self::Duration, times: u8) -> Self::Duration {
        let _ = times;
        duration
    }
}

impl Clock for () {
    type Duration = i64;
}

#[traced(provider = "traced", name = "of_parameter")]
fn later<C: Clock>(clock: &C, duration: C::Duration, by: impl Fn() -> u64, times: u8) -> impl Iterator<Item = u64> {
    let _ = (clock, duration);
    let by = by();
    (0..u64::from(times)).map(move |n| n * by)
}

#[test]
fn parameters_and_associated_types_are_no_fields() {
    let events = Recorded::of("traced:of_generics_begin");
    let table = Table { key: 1_u8, limit: 'l' };
    assert_eq!(table.get(2, "abc", table.limit, [0; 4], 5), 6);
    assert_eq!(events.last()[2..], ["5"]);
    let events = Recorded::of("traced:of_associated_begin");
    assert_eq!(().wait(-5, 3), -5);
    assert_eq!(events.last()[2..], ["3"]);
    let events = Recorded::of("traced:of_parameter_begin");
    assert_eq!(later(&(), 1, || 5, 3).collect::<Vec<_>>(), [0, 5, 10]);
    assert_eq!(events.last()[2..], ["3"]);
}

#[traced(provider = "traced", name = "patterns")]
fn patterns(
    mut count: u64,
    ref text: String,
    ref mut list: Vec<u8>,
    all @ (left, _): (u8, u8),
    whole @ _: u16,
    [first, ..]: [u8; 3],
    _: u32,
    r#type: bool,
) -> u64 {
    count += 1;
    list.push(left);
    count
        + text.len() as u64
        + list.len() as u64
        + u64::from(all.1)
        + u64::from(whole)
        + u64::from(first)
        + u64::from(r#type)
}

#[traced(provider = "traced", name = "attributes")]
fn attributes(
    #[allow(unused_variables, reason = "to see that it may be there")] unused: u64,
    #[cfg(any())] absent: NoSuchType,
    #[cfg(any())] size: u64,
    #[cfg(test)] there: u64,
) -> u64 {
    #![allow(clippy::let_and_return, reason = "to see that it may be there")]
    //! And text inside.
    use std::convert::identity;
    let there = identity(there);
    there
}

#[test]
fn arguments_may_have_patterns_and_attributes() {
    let events = Recorded::of("traced:patterns_begin");
    assert_eq!(patterns(1, "ab".to_owned(), vec![1], (3, 4), 5, [6, 7, 8], 9, true), 2 + 2 + 2 + 4 + 5 + 6 + 1);
    assert_eq!(fields("traced:patterns_begin"), ["count", "text", "list", "whole", "type"]);
    assert_eq!(events.last()[2..], ["1", "ab", "[1]", "5", "true"]);
    let events = Recorded::of("traced:attributes_begin");
    assert_eq!(attributes(1, 2), 2);
    assert_eq!(events.last()[2..], ["1", "2"]);
}

#[derive(Clone, Default)]
struct Worker {
    done: u64,
}

type Refused = std::num::TryFromIntError;

impl Worker {
    #[traced(provider = "traced", name = "by_value")]
    fn by_value(self, n: u64) -> Self {
        Self { done: self.done + n }
    }

    #[traced(provider = "traced", name = "by_mut_value", err)]
    fn by_mut_value(mut self, n: u64) -> Result<Self, Refused> {
        self.done += u64::from(u8::try_from(n)?);
        Ok(self)
    }

    #[traced(provider = "traced", name = "boxed")]
    fn boxed(self: Box<Self>, n: u64) -> u64 {
        self.done + n
    }

    #[traced(provider = "traced", name = "shared", err)]
    fn shared(self: &Arc<Self>, n: u64) -> Result<&Self, Refused> {
        u8::try_from(n)?;
        Ok(&**self)
    }

    #[traced(provider = "traced", name = "counted")]
    fn counted(self: Rc<Self>, n: u64) -> u64 {
        self.done + n
    }

    #[traced(provider = "traced", name = "pinned", err)]
    fn pinned(mut self: Pin<&mut Self>, n: u64) -> Result<u64, Refused> {
        self.as_mut().done += u64::from(u8::try_from(n)?);
        Ok(self.done)
    }

    #[traced(provider = "traced", name = "no_receiver")]
    fn new(done: u64) -> Self {
        Self { done }
    }

    #[traced(provider = "traced", name = "later_by_value", err)]
    async fn later(mut self, n: u64) -> Result<u64, Refused> {
        self.done += u64::from(u8::try_from(n)?);
        Ok(self.done)
    }
}

#[test]
fn receivers_of_every_kind() -> Result<(), Refused> {
    let names = ["by_value", "by_mut_value", "boxed", "shared", "counted", "pinned", "no_receiver", "later_by_value"];
    let events = names.map(|name| Recorded::of(&format!("traced:{name}_begin")));
    let mut worker = Worker::new(1).by_value(2).by_mut_value(3)?;
    assert_eq!(worker.done, 6);
    assert!(worker.clone().by_mut_value(300).is_err());
    assert_eq!(Box::new(worker.clone()).boxed(4), 10);
    assert_eq!(Arc::new(worker.clone()).shared(4)?.done, 6);
    assert_eq!(Rc::new(worker.clone()).counted(4), 10);
    assert_eq!(Pin::new(&mut worker).pinned(4)?, 10);
    assert_eq!(run(worker.later(5))?, 15);
    for (name, events) in names.iter().zip(events) {
        assert_eq!(events.last().len(), 3, "{name}");
    }
    Ok(())
}

#[track_caller]
#[traced(provider = "traced", name = "caller")]
fn caller(_n: u64) -> &'static Location<'static> {
    Location::caller()
}

#[test]
fn track_caller_is_kept() {
    let events = Recorded::of("traced:caller_begin");
    assert_eq!(caller(3).line(), line!());
    assert_eq!(events.last()[2..], ["3"]);
}

/// Names of types that are primitive, and of modules.
mod named {
    #[tracepoint::traced(provider = "traced_names")]
    pub(super) fn bool(text: &str) -> bool {
        text == "true"
    }

    #[tracepoint::traced(provider = "traced_names", err, fields(n: u64 = u64::from(n)))]
    pub(super) fn u64(n: u32) -> Result<u64, String> {
        Ok(u64::from(n))
    }

    #[tracepoint::traced(provider = "traced_names", fields(size: u64 = others::size()))]
    pub(super) fn others() {}

    mod others {
        pub(super) fn size() -> u64 {
            3
        }
    }

    #[tracepoint::traced(provider = "traced_names")]
    pub(super) fn r#match(größe: u64) -> u64 {
        größe
    }
}

#[test]
fn functions_may_have_any_names() {
    let events = ["bool", "u64", "others", "match"].map(|name| Recorded::of(&format!("traced_names:{name}_begin")));
    assert!(named::bool("true"));
    assert_eq!(named::u64(7), Ok(7));
    named::others();
    assert_eq!(named::r#match(1), 1);
    let seen = events.map(|events| events.last()[2..].to_vec());
    assert_eq!(seen, [vec!["true".to_owned()], vec!["7".to_owned()], vec!["3".to_owned()], vec![]]);
}

#[traced(provider = "traced", name = "never")]
fn never(n: u64) -> ! {
    panic!("{n}")
}

#[traced(provider = "traced", name = "never_later")]
async fn never_later(n: u64) -> ! {
    panic!("{n}")
}

/// # Safety
///
/// None is needed.
#[traced(provider = "traced", name = "not_safe", err)]
#[allow(unsafe_code, reason = "a function may be so")]
unsafe fn not_safe(n: u64) -> Result<u64, Refused> {
    Ok(u64::from(u8::try_from(n)?))
}

#[traced(provider = "traced", name = "foreign")]
extern "C" fn foreign(n: u64) -> u64 {
    n
}

#[traced(provider = "traced", name = "opaque")]
async fn opaque(n: u64) -> impl Fn(u64) -> u64 {
    move |by: u64| n * by
}

#[test]
fn functions_that_do_not_return_or_return_what_has_no_name() {
    let events = ["never", "never_later", "not_safe", "opaque", "foreign"]
        .map(|name| Recorded::of(&format!("traced:{name}_begin")));
    tracepoint::probe::silence_panics();
    let panic = |result: std::thread::Result<()>| *result.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(panic(std::panic::catch_unwind(|| never(1))), "1");
    assert_eq!(panic(std::panic::catch_unwind(|| run(never_later(2)))), "2");
    // SAFETY: nothing is needed.
    #[allow(unsafe_code, reason = "it is declared so")]
    let answer = unsafe { not_safe(3) };
    assert_eq!(answer, Ok(3));
    assert_eq!((run(opaque(4))(5), foreign(5)), (20, 5));
    assert_eq!(events.map(|events| events.last()[2].clone()), ["1", "2", "3", "4", "5"]);
}
