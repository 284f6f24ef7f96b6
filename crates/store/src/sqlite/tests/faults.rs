//! Locks, full disks, databases that are damaged, foreign or of another version.

use std::fs;
use std::time::Duration;

use super::*;

#[test]
fn a_second_process_is_kept_out() {
    let (folder, store) = open();
    let error = SqliteStore::open(folder.path()).err().unwrap();
    assert!(matches!(error, Error::InUse(_)), "{error}");
    drop(store);
    SqliteStore::open(folder.path()).unwrap();
}

#[test]
fn another_program_s_lock_is_a_typed_error() {
    let (folder, store) = open();
    store
        .write()
        .busy_timeout(Duration::from_millis(20))
        .unwrap();
    let other = Connection::open(folder.path().join(DATABASE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let change = Change::Insert(Box::new(job(1, "a")));
    let error = store.apply(std::slice::from_ref(&change)).unwrap_err();
    assert!(
        matches!(error, Error::Busy { .. }) && error.is_temporary(),
        "{error}"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.apply(&[change]).unwrap();
}

#[test]
fn a_full_database_refuses_and_goes_on() {
    let (_folder, store) = open();
    let pages: i64 = store
        .write()
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    store
        .write()
        .pragma_update_and_check(None, "max_page_count", pages + 4, |row| {
            row.get::<_, i64>(0)
        })
        .unwrap();
    let mut refused = None;
    for number in 0..200 {
        let mut job = job(number, &"long ".repeat(200));
        job.name = number.to_string();
        match store.apply(&[Change::Insert(Box::new(job))]) {
            Ok(()) => {}
            Err(error) => {
                refused = Some((number, error));
                break;
            }
        }
    }
    let (number, error) = refused.expect("four pages hold no 200 jobs");
    assert!(
        matches!(error, Error::DiskFull { .. }) && error.is_temporary(),
        "{error}"
    );
    assert_eq!(
        store.counts().unwrap().open,
        u64::from(number),
        "what was acknowledged is there"
    );
    store
        .write()
        .pragma_update_and_check(None, "max_page_count", 1 << 20, |row| row.get::<_, i64>(0))
        .unwrap();
    store
        .apply(&[Change::Insert(Box::new(job(number, "next")))])
        .unwrap();
}

/// A store with some jobs, closed, its write-ahead log merged into the file.
fn closed_store(jobs: u8) -> tempfile::TempDir {
    let (folder, store) = open();
    for number in 0..jobs {
        let job = job(number, &format!("id{number}"));
        store.apply(&[Change::Insert(Box::new(job))]).unwrap();
    }
    folder
}

#[test]
fn a_truncated_database_is_a_typed_error_at_every_length() {
    let folder = closed_store(100);
    let path = folder.path().join(DATABASE);
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() > 8 * 4096, "the test wants several pages");
    for length in [
        0,
        1,
        15,
        100,
        4095,
        4096,
        8192,
        whole.len() / 2,
        whole.len() - 4096,
    ] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = SqliteStore::open(folder.path()).err().unwrap();
        assert!(
            matches!(error, Error::Damaged { .. }),
            "{length} bytes: {error}"
        );
        assert_eq!(error.code(), "STORE_DAMAGED");
    }
    fs::remove_file(&path).unwrap();
    let error = SqliteStore::open(folder.path()).err().unwrap();
    assert!(matches!(error, Error::Damaged { .. }), "gone: {error}");
    fs::write(&path, &whole).unwrap();
    assert_eq!(
        SqliteStore::open(folder.path())
            .unwrap()
            .counts()
            .unwrap()
            .open,
        100
    );
}

#[test]
fn another_program_s_database_and_a_newer_schema_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(DATABASE);
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    let error = SqliteStore::open(folder.path()).err().unwrap();
    assert!(matches!(error, Error::Foreign { found: 0, .. }), "{error}");

    let folder = closed_store(1);
    let connection = Connection::open(folder.path().join(DATABASE)).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = SqliteStore::open(folder.path()).err().unwrap();
    assert!(
        matches!(error, Error::NewerSchema { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn a_value_changed_by_hand_is_named() {
    let (_folder, store) = open();
    let job = job(1, "a");
    store
        .apply(&[Change::Insert(Box::new(job.clone()))])
        .unwrap();
    store
        .write()
        .execute("UPDATE job SET priority = 77", [])
        .unwrap();
    let error = store.job(job.id).unwrap_err().to_string();
    assert!(
        error.contains(&job.id.to_string()) && error.contains("priority"),
        "{error}"
    );
}

#[test]
fn migration_starts_at_the_stored_version() {
    let mut connection = Connection::open_in_memory().unwrap();
    for from in [0, schema::VERSION] {
        let tx = connection.transaction().unwrap();
        schema::migrate(&tx, from).unwrap();
        tx.commit().unwrap();
        assert_eq!(schema::version(&connection).unwrap(), schema::VERSION);
        assert_eq!(
            schema::application_id(&connection).unwrap(),
            schema::APPLICATION_ID
        );
    }
}
