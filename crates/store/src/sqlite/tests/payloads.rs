//! Payload files.

use std::fs;

use super::*;

#[test]
fn payloads_are_kept_as_long_as_an_open_job_needs_them() {
    let (_folder, store) = open();
    let (digest, bytes) = store.put_payload(&mut &b"payload"[..], 100).unwrap();
    assert_eq!((digest, bytes), (Digest::of(b"payload"), 7));
    let mut job = job(1, "a");
    job.digest = digest;
    store
        .apply(&[Change::Insert(Box::new(job.clone()))])
        .unwrap();
    let now = Retention {
        payload_grace_ms: 0,
        ..Retention::default()
    };
    assert_eq!(store.sweep(&now, NOW).unwrap().payloads, 0);
    assert_eq!(store.payload(&digest).unwrap(), b"payload");
    store.apply(&[finish(&job, End::Cancelled, NOW)]).unwrap();
    assert_eq!(
        store.sweep(&Retention::default(), NOW).unwrap().payloads,
        0,
        "within grace"
    );
    let swept = store.sweep(&now, NOW).unwrap();
    assert_eq!((swept.payloads, swept.payload_bytes), (1, 7));
    let error = store.payload(&digest).unwrap_err();
    assert!(matches!(error, Error::MissingPayload(_)), "{error}");
}

#[test]
fn a_damaged_payload_is_found_and_healed_by_storing_it_again() {
    let (folder, store) = open();
    let (digest, _) = store.put_payload(&mut &b"payload"[..], 100).unwrap();
    let name = digest.to_string();
    let path = folder.path().join("payloads").join(&name[..2]).join(&name);
    for damage in [&b"pbyload"[..], b"paylo", b""] {
        fs::write(&path, damage).unwrap();
        let error = store.payload(&digest).unwrap_err();
        assert_eq!(error.code(), "PAYLOAD_DAMAGED");
        assert!(matches!(error, Error::DamagedPayload { .. }), "{error}");
    }
    store.put_payload(&mut &b"payload"[..], 100).unwrap();
    assert_eq!(store.payload(&digest).unwrap(), b"payload");
}

#[test]
fn a_payload_whose_submission_takes_long_is_renewed() {
    let (folder, store) = open();
    let (digest, _) = store.put_payload(&mut &b"payload"[..], 100).unwrap();
    let name = digest.to_string();
    let path = folder.path().join("payloads").join(&name[..2]).join(&name);
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(hour_ago).unwrap();
    store.renew_payload(&digest).unwrap();
    let retention = Retention::default();
    assert_eq!(store.sweep(&retention, NOW).unwrap().payloads, 0);
    file.set_modified(hour_ago).unwrap();
    assert_eq!(store.sweep(&retention, NOW).unwrap().payloads, 1);
    let error = store.renew_payload(&digest).unwrap_err();
    assert!(matches!(error, Error::MissingPayload(_)), "{error}");
}

#[test]
fn a_payload_that_no_job_needs_can_be_discarded_at_once() {
    let (_folder, store) = open();
    let (digest, _) = store.put_payload(&mut &b"no request"[..], 100).unwrap();
    assert!(store.discard_payload(&digest).unwrap());
    assert!(!store.discard_payload(&digest).unwrap());
    assert!(store.payload(&digest).is_err());
    let (digest, _) = store.put_payload(&mut &b"payload"[..], 100).unwrap();
    let mut wanted = job(1, "a");
    wanted.digest = digest;
    store.apply(&[Change::Insert(Box::new(wanted))]).unwrap();
    assert!(!store.discard_payload(&digest).unwrap());
    assert_eq!(store.payload(&digest).unwrap(), b"payload");
}

#[test]
fn a_payload_beyond_the_limit_leaves_nothing_behind() {
    let (folder, store) = open();
    let error = store.put_payload(&mut &b"payload"[..], 6).unwrap_err();
    assert!(
        matches!(error, Error::PayloadTooLarge { limit: 6 }),
        "{error}"
    );
    let incoming = folder.path().join("payloads/incoming");
    assert_eq!(fs::read_dir(incoming).unwrap().count(), 0);
}

#[test]
fn half_written_files_go_at_the_next_start() {
    let (folder, store) = open();
    drop(store);
    let left = folder.path().join("payloads/incoming/.tmpabc");
    fs::write(&left, b"half").unwrap();
    drop(SqliteStore::open(folder.path()).unwrap());
    assert!(!left.exists());
}
