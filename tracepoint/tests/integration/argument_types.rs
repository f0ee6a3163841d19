//! Arguments of the types in real programs: references, trait objects, function pointers, types with lifetimes.

use crate::common::Recorded;
use std::borrow::Cow;
use std::cell::{Ref, RefCell};
use std::fmt::{self, Display};
use std::rc::Rc;

#[derive(Clone, Copy)]
struct View<'a, T> {
    shown: &'a [T],
}

#[derive(Clone, Copy)]
struct Pair<A, B>(A, B);

#[derive(Clone, Copy)]
struct Buffer<const N: usize>([u8; N]);

const LEN: usize = 3;

struct Named(&'static str);

impl Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

tracepoint::define_trace! {
    provider = "types";

    text(text: &str, fixed: &'static str) { text: str = text, fixed: str = fixed }
    slice(slice: &[u16], array: &[u8; LEN], value: [i8; 2]) { slice: [u16] = slice, array: [u8; LEN] = array, value: [i8; 2] = value }
    object(object: &dyn Display, shared: &(dyn Display + Send + Sync)) {
        object: str = &object.to_string(),
        shared: str = &format!("<{shared}>"),
    }
    cow(cow: &Cow<'_, str>, list: &Cow<'_, [u8]>) if list.len() < 5 { cow: str = cow, list: [u8] = list }
    borrowed(cell: &Ref<'_, String>, inner: &RefCell<u32>) { cell: str = cell, inner: u32 = *inner.borrow() }
    shared(count: &Rc<u64>) { count: u64 = **count }
    functions(plain: fn(u8) -> u8, reference: fn(&str) -> &str, object: &dyn Fn(&str) -> usize) {
        plain: u8 = plain(1),
        reference: str = reference("abc"),
        object: usize = object("abcd"),
    }
    generic(view: View<'_, u32>, pair: Pair<&str, Option<&[u8]>>, buffer: Buffer<{ LEN + 1 }>) {
        view: [u32] = view.shown,
        first: str = pair.0,
        second: [u8] = pair.1.unwrap_or_default(),
        buffer: [u8; LEN + 1] = buffer.0,
    }
    tuples(tuple: (u8, &str), unit: (), nested: ((u8,), [(u8, bool); 1])) {
        first: u8 = tuple.0,
        second: str = tuple.1,
        nested: bool = nested.1[0].1,
    }
    pointers(shared: *const u8, exclusive: *mut u8) {
        shared: u64 = shared.addr() as u64,
        exclusive: bool = exclusive.is_null(),
    }
    qualified(path: &std::path::Path, text: Option<&'static str>, number: <u32 as std::ops::Add>::Output) {
        path: path = path,
        text: str = text.unwrap_or("none"),
        number: u32 = number,
    }
    nested(deep: &&&str, option: Option<&Option<&str>>) { deep: str = deep, option: bool = option.is_some() }
    short(id: u64, by: &u16, name: &str, file: &std::path::Path, list: &[u16], array: &[u8; LEN], flag: bool) {
        id,
        /// The argument that is passed by reference.
        by,
        name, file, list, array, flag,
        shown: hex u64 = id,
    }
    letters(letter: char, flag: bool) { letter: u32 = letter as u32, flag: bool = flag }
}

type Alias<'a> = &'a Cow<'a, str>;

tracepoint::define_trace! {
    provider = "types";
    alias(cow: Alias<'_>) { cow: str = cow }
}

#[test]
fn text() {
    let recorded = Recorded::of("types:text");
    let owned = String::from("owned");
    tracepoint::trace!(text(&owned, "fixed"));
    trace_text(&owned, "fixed");
    assert_eq!(recorded.all(), [["owned", "fixed"]; 2]);
}

#[test]
fn fields_that_are_arguments() {
    let recorded = Recorded::of("types:short");
    tracepoint::trace!(short(17, &2, "n", std::path::Path::new("/p"), &[1, 2], &[3, 4, 5], true));
    assert_eq!(recorded.last(), ["17", "2", "n", "/p", "[1, 2]", "[3, 4, 5]", "true", "17"]);
}

#[test]
fn slices() {
    let recorded = Recorded::of("types:slice");
    tracepoint::trace!(slice(&[1, 2], &[3, 4, 5], [-1, 1]));
    assert_eq!(recorded.last(), ["[1, 2]", "[3, 4, 5]", "[-1, 1]"]);
}

#[test]
fn objects() {
    let recorded = Recorded::of("types:object");
    let probe = register_trace_object(|object, shared| assert_ne!(object.to_string(), shared.to_string())).unwrap();
    tracepoint::trace!(object(&Named("a"), &Named("b")));
    unregister_trace_object(probe);
    assert_eq!(recorded.last(), ["a", "<b>"]);
}

#[test]
fn clone_on_write() {
    let recorded = Recorded::of("types:cow");
    tracepoint::trace!(cow(&Cow::from("a"), &Cow::from(vec![1])));
    let text = String::from("borrowed");
    tracepoint::trace!(cow(&Cow::from(&text), &Cow::from(&[2][..])));
    assert_eq!(recorded.all(), [["a", "[1]"], ["borrowed", "[2]"]]);
    let recorded = Recorded::of("types:alias");
    tracepoint::trace!(alias(&Cow::from("a")));
    assert_eq!(recorded.last(), ["a"]);
}

#[test]
fn cells() {
    let recorded = Recorded::of("types:borrowed");
    let cell = RefCell::new(String::from("inside"));
    tracepoint::trace!(borrowed(&cell.borrow(), &RefCell::new(7)));
    assert_eq!(recorded.last(), ["inside", "7"]);
    let recorded = Recorded::of("types:shared");
    tracepoint::trace!(shared(&Rc::new(8)));
    assert_eq!(recorded.last(), ["8"]);
}

#[test]
fn functions_and_closures() {
    fn plain(n: u8) -> u8 {
        n + 1
    }
    let recorded = Recorded::of("types:functions");
    let extra = 1;
    tracepoint::trace!(functions(plain, str::trim, &|text| text.len() + extra));
    assert_eq!(recorded.last(), ["2", "abc", "5"]);
}

#[test]
fn generic_types() {
    let recorded = Recorded::of("types:generic");
    let numbers = vec![1, 2];
    tracepoint::trace!(generic(View { shown: &numbers }, Pair("p", None), Buffer([1, 2, 3, 4])));
    assert_eq!(recorded.last(), ["[1, 2]", "p", "[]", "[1, 2, 3, 4]"]);
}

#[test]
fn tuples_and_pointers() {
    let recorded = Recorded::of("types:tuples");
    tracepoint::trace!(tuples((1, "one"), (), ((2,), [(3, true)])));
    assert_eq!(recorded.last(), ["1", "one", "true"]);
    let recorded = Recorded::of("types:pointers");
    tracepoint::trace!(pointers(std::ptr::without_provenance(16), std::ptr::null_mut()));
    assert_eq!(recorded.last(), ["16", "true"]);
}

#[test]
fn paths_of_types() {
    let recorded = Recorded::of("types:qualified");
    tracepoint::trace!(qualified("/tmp".as_ref(), Some("text"), 3));
    assert_eq!(recorded.last(), ["/tmp", "text", "3"]);
    let recorded = Recorded::of("types:nested");
    tracepoint::trace!(nested(&&"deep", Some(&None)));
    assert_eq!(recorded.last(), ["deep", "true"]);
    let recorded = Recorded::of("types:letters");
    tracepoint::trace!(letters('a', true));
    assert_eq!(recorded.last(), ["97", "true"]);
}
