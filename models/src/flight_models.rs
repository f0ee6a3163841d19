//! Models of the operations in flight of a latency: each ends once, with its own time, and none is lost.

use crate::flights::{BeginOutcome, Table, begin, end, in_flight};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

/// Any two identities: in the models, the table has one set.
const X: u64 = 7;
const Y: u64 = 8;

fn table() -> Arc<Table> {
    Arc::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

/// Runs `act` in another thread.
fn beside<T: 'static>(table: &Arc<Table>, act: impl FnOnce(&Table) -> T + 'static) -> thread::JoinHandle<T> {
    let table = Arc::clone(table);
    thread::spawn(move || act(&table))
}

/// Two threads find the beginning made by another thread: the operation ends once, or is still in flight.
#[test]
fn an_operation_ends_once() {
    loom::model(|| {
        let table = table();
        let beginning = beside(&table, |table| begin(table, X, 10));
        let other = beside(&table, |table| end(table, X));
        let ended = [end(&table, X), other.join().unwrap()];
        assert_eq!(beginning.join().unwrap(), BeginOutcome::New);
        let times: Vec<u64> = ended.into_iter().flatten().collect();
        assert!(times.iter().all(|time| *time == 10), "{times:?}");
        assert_eq!(times.len() as u64 + in_flight(&table), 1, "{times:?}");
    });
}

/// The way of an ended operation is taken by another one, which is not ended by its predecessor's identity.
#[test]
fn an_identity_belongs_to_its_time() {
    loom::model(|| {
        let table = table();
        begin(&table, X, 5);
        end(&table, X);
        let other = beside(&table, |table| begin(table, Y, 7));
        assert_eq!(end(&table, X), None);
        assert_eq!(other.join().unwrap(), BeginOutcome::New);
        assert_eq!((end(&table, X), end(&table, Y)), (None, Some(7)));
    });
}

/// The same within one nanosecond, while the end of the former operation already has its time.
#[test]
fn equal_times_are_told_apart() {
    loom::model(|| {
        let table = table();
        begin(&table, X, 5);
        let other = beside(&table, |table| (end(table, X), begin(table, Y, 5)));
        let own = end(&table, X);
        let (others, begun) = other.join().unwrap();
        assert!(own.is_none() || others.is_none(), "ended twice");
        assert_eq!(begun, BeginOutcome::New);
        assert_eq!((end(&table, Y), end(&table, X).is_some()), (Some(5), own.or(others).is_none()));
        assert_eq!(in_flight(&table), 0);
    });
}

/// Two threads begin in one set: each finds a way, and both operations end.
#[test]
fn beginnings_do_not_share_a_way() {
    loom::model(|| {
        let table = table();
        let other = beside(&table, |table| begin(table, Y, 9));
        assert_eq!((begin(&table, X, 8), other.join().unwrap()), (BeginOutcome::New, BeginOutcome::New));
        assert_eq!((end(&table, X), end(&table, Y)), (Some(8), Some(9)));
    });
}

/// A beginning replaces another one with its identity, which is ending concurrently: that one is ended or replaced, and the account balances.
#[test]
fn a_beginning_replaces_or_follows() {
    loom::model(|| {
        let table = table();
        begin(&table, X, 5);
        let other = beside(&table, |table| end(table, X));
        let begun = begin(&table, X, 6);
        let ended = other.join().unwrap();
        let replaced = u64::from(begun == BeginOutcome::Replaced);
        assert_eq!(2, u64::from(ended.is_some()) + replaced + in_flight(&table), "{begun:?} {ended:?}");
        if begun == BeginOutcome::Replaced {
            assert_ne!(ended, Some(5), "a beginning that was forgotten");
        }
    });
}
