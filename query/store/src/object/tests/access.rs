//! Permissions to open a store and to replace its files.

use super::seed;
use super::{ALL, Bucket, ObjectBackend, trace, write};
use crate::StoreError;
use crate::backend::Backend;
use crate::object::lease::{Lease, Replacement};
use tracepoint_query_tests::traces::Random;

#[test]
fn a_prefix_with_other_objects_is_no_store() {
    let bucket = Bucket::default();
    let client = bucket.client(ALL, false);
    client.block(client.overwrite("notes.txt", b"mine")).expect("an object");
    assert!(matches!(bucket.store(ALL, false), Err(StoreError::NotAStore { .. })));
    client.block(client.delete(vec!["notes.txt".to_owned()])).expect("an object");
    bucket.opened();
    assert!(!ObjectBackend { client }.has_others().expect("it is listed"));
}

#[test]
fn a_store_that_may_not_be_written_is_opened_to_read() {
    let mut random = Random(seed::seed());
    let place = tempfile::tempdir().expect("a directory");
    let (trace, _) = trace(&place, "trace", &mut random);
    let mut refused = 0;
    for requests in 0.. {
        let bucket = Bucket::default();
        bucket.opened();
        let written = bucket.store(requests, true).and_then(|store| write(&store, &trace));
        bucket.read_only().opened_to_read().expect("it is opened");
        // Completing committed changes requires writing.
        refused += usize::from(bucket.read_only().created().is_err());
        if written.is_ok() {
            break;
        }
    }
    assert!(refused > 3, "{refused}");
}

#[test]
fn a_process_that_was_taken_for_dead_replaces_nothing() {
    let bucket = Bucket::default();
    let [one, other] = [(); 2].map(|()| bucket.client(ALL, false));
    let path = "day=2020-09-13/part-a.parquet";
    one.block(one.overwrite(path, b"rows")).expect("an object");
    let replacement = Replacement { add: Vec::new(), remove: vec![path.to_owned()] };
    let suspended = one.block(Lease::acquire(&one)).expect("nobody has it");
    suspended.suspend();
    let lease = other.block(Lease::acquire(&other)).expect("the other one does nothing");
    assert!(!one.block(suspended.replace(&replacement)).expect("it is refused"));
    assert!(!one.block(suspended.renew()).expect("it is refused"));
    drop(suspended);
    assert!(other.block(other.exists(path)).expect("it is looked up"));
    assert!(other.block(lease.renew()).expect("it is renewed"));
    assert!(other.block(lease.replace(&replacement)).expect("it is done"));
    assert!(!other.block(other.exists(path)).expect("it is looked up"));
}
