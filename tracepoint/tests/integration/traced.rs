//! `#[traced]` on functions, methods and `async fn`s: their fields, results and types.
#![allow(
    clippy::unused_self,
    clippy::unused_async,
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    clippy::too_many_arguments,
    clippy::used_underscore_binding
)]

use crate::common::Recorded;
use crate::future::{Later, run};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::ParseIntError;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracepoint::span::Span;
use tracepoint::{span, traced};

tracepoint::define_trace! {
    provider = "traced";
    span outer();
}

/// All arguments that can be fields.
#[traced(provider = "traced", level = Info)]
fn plain(
    id: u64,
    name: &str,
    owned: String,
    file: &Path,
    place: PathBuf,
    bytes: &mut [u8],
    list: Vec<i32>,
    factor: &f64,
    map: &BTreeMap<u8, u8>,
    (left, _): (u8, u8),
) -> usize {
    bytes[0] = left;
    name.len() + owned.len() + bytes.len() + list.len() + map.len()
}

#[test]
fn arguments_with_the_types_of_fields_are_fields() {
    let events = Recorded::of("traced:plain_begin");
    let size =
        plain(7, "n", "o".into(), "f".as_ref(), "p".into(), &mut [1, 2], vec![3], &0.5, &BTreeMap::new(), (9, 0));
    assert_eq!(size, 5);
    assert_eq!(events.last()[1..], ["0", "7", "n", "o", "f", "p", "[1, 2]", "[3]", "0.5"]);
    let tracepoint = tracepoint::find("traced:plain_end").unwrap();
    assert_eq!(tracepoint.level(), tracepoint::Level::Info);
    assert_eq!(tracepoint.doc(), "All arguments that can be fields.");
}

struct Shop<T> {
    name: String,
    stock: Vec<T>,
}

impl<T: Clone + Display> Shop<T> {
    #[traced(provider = "traced", fields(shop: str = &self.name, n, left: hex u64 = (self.stock.len() - n) as u64))]
    fn take<'a, F>(&'a mut self, n: usize, check: F) -> impl Iterator<Item = T> + use<'a, T, F>
    where
        F: Fn(&T) -> bool,
    {
        self.stock.drain(..n).filter(move |item| check(item))
    }

    #[traced(provider = "traced", name = "first_of", skip(secret), err)]
    fn first(&self, secret: u64, place: usize) -> Result<&T, String> {
        let _ = secret;
        let item = self.stock.get(place).ok_or_else(|| format!("no item {place} in {}", self.name))?;
        Ok(item)
    }

    #[traced(provider = "traced", err)]
    fn newest(&mut self) -> Result<&mut T, String> {
        self.stock.last_mut().ok_or_else(|| "sold out".to_owned())
    }

    #[traced(provider = "traced", parent = parent)]
    async fn later(&mut self, parent: &Span<outer>, n: u32) -> T {
        let _ = parent;
        let n = Later(n, false).await;
        self.stock.remove(n as usize)
    }
}

fn shop() -> Shop<u8> {
    Shop { name: "corner".into(), stock: vec![4, 5, 6] }
}

#[test]
fn methods_of_generic_types() {
    let events = Recorded::of("traced:take_begin");
    let mut shop = shop();
    assert_eq!(shop.take(2, |item| *item > 4).collect::<Vec<_>>(), [5]);
    assert_eq!(events.last()[2..], ["corner", "2", "1"]);
}

#[test]
fn an_error_is_the_outcome_and_an_event() {
    let (begins, ends) = (Recorded::of("traced:first_of_begin"), Recorded::of("traced:first_of_end"));
    let shop = shop();
    assert_eq!(shop.first(1, 0), Ok(&4));
    let errors = Recorded::of("traced:first_of_err");
    assert!(shop.first(1, 9).is_err());
    let outcomes: Vec<_> = ends.all().into_iter().map(|end| end[2].clone()).collect();
    assert_eq!(outcomes, ["0", "1"]);
    assert_eq!(begins.last()[2..], ["9"]);
    assert_eq!(errors.all(), [[begins.last()[0].as_str(), "no item 9 in corner"]]);
}

#[test]
fn what_was_lent_is_given_back() {
    let ends = Recorded::of("traced:newest_end");
    let mut shop = shop();
    *shop.newest().unwrap() = 9;
    assert_eq!((shop.stock, ends.all().len()), (vec![4, 5, 9], 1));
}

#[test]
fn async_methods() {
    let (begins, polls) = (Recorded::of("traced:later_begin"), Recorded::of("traced:later_poll_begin"));
    let outers = Recorded::of("traced:outer_begin");
    let outer = span!(outer());
    assert_eq!(run(shop().later(&outer, 1)), 5);
    assert_eq!(begins.last()[1..], [outers.last()[0].as_str(), "1"]);
    assert_eq!(polls.all().len(), 2);
}

#[traced(provider = "traced", err)]
async fn parsed(text: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let number: u64 = text.parse()?;
    Ok(number)
}

#[traced(provider = "traced")]
async fn annotated<T: Display>(value: T) -> Result<impl Display, ParseIntError> {
    Later(0, false).await;
    let number: i64 = value.to_string().parse()?;
    Ok(number)
}

#[test]
fn async_functions_with_results() {
    let (ends, errors) = (Recorded::of("traced:parsed_end"), Recorded::of("traced:parsed_err"));
    assert_eq!(run(parsed("17")).unwrap(), 17);
    assert!(run(parsed("x")).is_err());
    let outcomes: Vec<_> = ends.all().into_iter().map(|end| end[2].clone()).collect();
    assert_eq!(outcomes, ["0", "1"]);
    assert_eq!(errors.last()[1], "invalid digit found in string");
    let events = Recorded::of("traced:annotated_begin");
    assert_eq!(run(annotated("-3")).unwrap().to_string(), "-3");
    assert_eq!(events.all().len(), 1);
    fn is_send(_: &impl Send) {}
    is_send(&parsed("1"));
}

/// No other test has its span on.
#[traced(provider = "traced", err)]
fn refused(reason: &str) -> Result<(), &str> {
    Err(reason)
}

#[traced(provider = "traced", err)]
async fn refused_later(reason: &str) -> Result<(), &str> {
    Err(Later(reason, false).await)
}

#[test]
fn errors_are_events_although_the_span_is_off() {
    let (now, later) = (Recorded::of("traced:refused_err"), Recorded::of("traced:refused_later_err"));
    assert_eq!(refused("shut"), Err("shut"));
    assert_eq!(run(refused_later("late")), Err("late"));
    assert_eq!(
        (now.all(), later.all()),
        (vec![vec!["0".into(), "shut".into()]], vec![vec!["0".into(), "late".into()]])
    );
}

#[traced(provider = "traced", fields(map: debug = map, wait, at: display(8) = 1.5, left: Option<u8> = Some(3)))]
fn described(map: &BTreeMap<u8, u8>, wait: Duration) -> usize {
    map.len()
}

#[traced(provider = "traced")]
fn valued(wait: Duration, limit: Option<u64>, peer: std::net::IpAddr) -> bool {
    limit.is_some() && peer.is_loopback() && !wait.is_zero()
}

#[test]
fn values_of_further_types() {
    let (described_events, valued_events) =
        (Recorded::of("traced:described_begin"), Recorded::of("traced:valued_begin"));
    assert_eq!(described(&BTreeMap::from([(1, 2)]), Duration::from_micros(2)), 1);
    assert_eq!(described_events.last()[2..], ["{1: 2}", "2000", "1.5", "3"]);
    assert!(valued(Duration::from_nanos(7), Some(9), std::net::Ipv4Addr::LOCALHOST.into()));
    assert_eq!(valued_events.last()[2..], ["7", "9", "127.0.0.1"]);
}

trait Answer {
    #[traced(provider = "traced", name = "by_default")]
    fn answer(&self, n: i8) -> i8 {
        n
    }
}

impl Answer for u8 {}

#[traced(provider = "traced")]
fn names_of_the_macro(_span: u64, span: u64, guard: u64) -> u64 {
    _span + span + guard
}

#[traced(provider = "traced", err)]
fn names_with_a_result(_span: u64, result: u64, error: u64, id: u64) -> Result<u64, String> {
    Ok(_span + result + error + id)
}

#[test]
fn arguments_may_have_any_names() {
    let (begins, ends) =
        (Recorded::of("traced:names_of_the_macro_begin"), Recorded::of("traced:names_of_the_macro_end"));
    assert_eq!(names_of_the_macro(1, 2, 4), 7);
    assert_eq!((&begins.last()[2..], ends.all().len()), (&["1", "2", "4"].map(String::from)[..], 1));
    assert_eq!(names_with_a_result(1, 2, 4, 8), Ok(15));
}

#[traced(provider = "traced", name = "early", fields())]
fn returns_early(n: Option<u64>) -> Option<u64> {
    let n = n?;
    if n == 0 {
        return Some(1);
    }
    Some(n)
}

#[test]
fn defaults_of_traits_and_early_returns() {
    let (answers, ends) = (Recorded::of("traced:by_default_begin"), Recorded::of("traced:early_end"));
    assert_eq!(3_u8.answer(-4), -4);
    assert_eq!(answers.last()[2], "-4");
    assert_eq!([None, Some(0), Some(2)].map(returns_early), [None, Some(1), Some(2)]);
    assert_eq!(ends.all().len(), 3);
}
