//! The store of one host: a folder with `jobs.db` (SQLite in WAL mode, `synchronous = FULL`),
//! payload files beside it, a lock file that keeps a second process out, and a mark that the
//! folder has held a store, so that a lost database is not taken for a new one.

mod apply;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, params};

use crate::payload::{Payloads, make_folder, sync_folder};
use crate::record::{Change, Digest, JobId, JobRecord};
use crate::{Counts, Error, Filter, OpenJob, Result, Retention, Store, Swept};
use apply::Refused;
use rows::{JOB_COLUMNS, integer};

const DATABASE: &str = "jobs.db";
const LOCK: &str = "lock";
const MARK: &str = "initialised";
/// How long a call waits for another program's lock inside the database.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Jobs in an SQLite file, payloads in files, of one host.
pub struct SqliteStore {
    path: PathBuf,
    payloads: Payloads,
    writer: Mutex<Connection>,
    /// Separate, so that listings do not wait for commits.
    reader: Mutex<Connection>,
    /// Locked as long as the store lives.
    _lock: File,
}

impl SqliteStore {
    /// Opens the store in `folder`, which is made if it does not exist; brings an older schema
    /// up to date and checks the database.
    ///
    /// Errors: [`Error::InUse`], [`Error::Busy`], [`Error::Damaged`], [`Error::NewerSchema`],
    /// [`Error::Foreign`], [`Error::Io`].
    pub fn open(folder: &Path) -> Result<Self> {
        make_folder(folder)?;
        let lock = take_lock(folder)?;
        let path = folder.join(DATABASE);
        let mark = folder.join(MARK);
        if mark.exists() && fs::metadata(&path).map_or(0, |data| data.len()) == 0 {
            let cause = "it is empty or gone, but there was one here".to_owned();
            return Err(Error::Damaged { path, cause });
        }
        let mut writer = connect(&path)?;
        prepare(&mut writer, &path, mark.exists()).map_err(|e| e.into_error(&path))?;
        if !mark.exists() {
            let file = File::create(&mark).map_err(|e| Error::io("create", &mark, e))?;
            file.sync_all().map_err(|e| Error::io("sync", &mark, e))?;
            sync_folder(folder)?;
        }
        let reader = connect(&path)?;
        let payloads = Payloads::open(folder.join("payloads"))?;
        let (writer, reader) = (Mutex::new(writer), Mutex::new(reader));
        Ok(Self {
            path,
            payloads,
            writer,
            reader,
            _lock: lock,
        })
    }

    fn write(&self) -> MutexGuard<'_, Connection> {
        // A panic between statements leaves no open transaction: dropping it rolls back.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, error: &rusqlite::Error) -> Error {
        database_error(&self.path, error)
    }

    fn jobs(&self, rest: &str, parameters: impl rusqlite::Params) -> Result<Vec<JobRecord>> {
        let connection = self.read();
        let mut statement = connection
            .prepare_cached(&format!("SELECT {JOB_COLUMNS} FROM job {rest}"))
            .map_err(|e| self.error(&e))?;
        let mut found = statement.query(parameters).map_err(|e| self.error(&e))?;
        let mut jobs = Vec::new();
        while let Some(row) = found.next().map_err(|e| self.error(&e))? {
            jobs.push(rows::job(row)?);
        }
        Ok(jobs)
    }
}

impl Store for SqliteStore {
    fn put_payload(&self, source: &mut dyn Read, limit: u64) -> Result<(Digest, u64)> {
        self.payloads.put(source, limit)
    }

    fn payload(&self, digest: &Digest) -> Result<Vec<u8>> {
        self.payloads.get(digest)
    }

    fn renew_payload(&self, digest: &Digest) -> Result<()> {
        self.payloads.renew(digest)
    }

    fn discard_payload(&self, digest: &Digest) -> Result<bool> {
        self.payloads.discard(digest, || self.needs_payload(digest))
    }

    fn apply(&self, changes: &[Change]) -> Result<()> {
        let mut connection = self.write();
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| self.error(&e))?;
        for (index, change) in changes.iter().enumerate() {
            apply::change(&tx, change).map_err(|refused| match refused {
                Refused::Condition(cause) => Error::Conflict { index, cause },
                Refused::Database(e) => self.error(&e),
            })?;
        }
        tx.commit().map_err(|e| self.error(&e))
    }

    fn job(&self, id: JobId) -> Result<Option<JobRecord>> {
        Ok(self.jobs("WHERE id = ?1", [id.as_bytes()])?.pop())
    }

    fn proof(&self, id: JobId) -> Result<Option<Vec<u8>>> {
        self.read()
            .prepare_cached("SELECT proof FROM result WHERE job = ?1")
            .and_then(|mut s| s.query_row([id.as_bytes()], |row| row.get(0)).optional())
            .map_err(|e| self.error(&e))
    }

    fn unit_proofs(&self, id: JobId) -> Result<Vec<(u32, Vec<u8>)>> {
        let connection = self.read();
        let mut statement = connection
            .prepare_cached(
                "SELECT position, proof FROM unit WHERE job = ?1 AND proof IS NOT NULL
                 ORDER BY position",
            )
            .map_err(|e| self.error(&e))?;
        let found = statement
            .query_map([id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(|e| self.error(&e))?;
        found
            .collect::<rusqlite::Result<_>>()
            .map_err(|e| self.error(&e))
    }

    fn open_jobs(&self) -> Result<Vec<OpenJob>> {
        let jobs = self.jobs("WHERE state = 0 ORDER BY accepted_ms, sequence", [])?;
        let mut open: Vec<_> = jobs
            .into_iter()
            .map(|job| OpenJob {
                job,
                units: Vec::new(),
            })
            .collect();
        let index: std::collections::HashMap<_, _> = open
            .iter()
            .enumerate()
            .map(|(i, open)| (open.job.id, i))
            .collect();
        let connection = self.read();
        let mut statement = connection
            .prepare_cached(
                "SELECT job, position, failures, token, holder, expires_ms, proof IS NOT NULL
                 FROM unit ORDER BY job, position",
            )
            .map_err(|e| self.error(&e))?;
        let mut found = statement.query([]).map_err(|e| self.error(&e))?;
        while let Some(row) = found.next().map_err(|e| self.error(&e))? {
            let (job, unit) = rows::unit(row)?;
            if let Some(&at) = index.get(&job) {
                open[at].units.push(unit);
            }
        }
        Ok(open)
    }

    fn ended_jobs(&self) -> Result<Vec<JobRecord>> {
        self.jobs("WHERE state <> 0 ORDER BY accepted_ms, sequence", [])
    }

    fn list(&self, filter: Filter, offset: u64, limit: u64) -> Result<Vec<JobRecord>> {
        let (offset, limit) = (integer(offset), integer(limit));
        match filter.state {
            Some(state) => self.jobs(
                "WHERE state = ?1 ORDER BY sequence DESC LIMIT ?2 OFFSET ?3",
                params![state as i64, limit, offset],
            ),
            None => self.jobs("ORDER BY sequence DESC LIMIT ?1 OFFSET ?2", [limit, offset]),
        }
    }

    fn counts(&self) -> Result<Counts> {
        self.read()
            .prepare_cached(
                "SELECT count(*) FILTER (WHERE state = 0), count(*) FILTER (WHERE state = 1),
                     count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
                     coalesce(sum(payload_bytes) FILTER (WHERE state = 0), 0)
                 FROM job",
            )
            .and_then(|mut statement| {
                statement.query_row([], |row| {
                    let count = |i| row.get::<_, i64>(i).map(|n| n.max(0) as u64);
                    Ok(Counts {
                        open: count(0)?,
                        completed: count(1)?,
                        failed: count(2)?,
                        cancelled: count(3)?,
                        open_payload_bytes: count(4)?,
                    })
                })
            })
            .map_err(|e| self.error(&e))
    }

    fn renew(&self, holder: &str, expires_ms: u64) -> Result<u64> {
        self.write()
            .prepare_cached("UPDATE unit SET expires_ms = ?2 WHERE holder = ?1")
            .and_then(|mut statement| statement.execute(params![holder, integer(expires_ms)]))
            .map(|rows| rows as u64)
            .map_err(|e| self.error(&e))
    }

    fn sweep(&self, retention: &Retention, now_ms: u64) -> Result<Swept> {
        let jobs = self.sweep_jobs(retention, now_ms)?;
        let grace = Duration::from_millis(retention.payload_grace_ms);
        let needed = |digest: &Digest| self.needs_payload(digest);
        let (payloads, payload_bytes) = self.payloads.sweep(grace, needed)?;
        Ok(Swept {
            jobs,
            payloads,
            payload_bytes,
        })
    }
}

impl SqliteStore {
    /// Whether an open job names this payload.
    fn needs_payload(&self, digest: &Digest) -> Result<bool> {
        self.read()
            .prepare_cached("SELECT 1 FROM job WHERE digest = ?1 AND state = 0")
            .and_then(|mut statement| statement.exists([digest.as_bytes()]))
            .map_err(|e| self.error(&e))
    }

    /// Removes ended jobs beyond the limits, oldest first.
    fn sweep_jobs(&self, retention: &Retention, now_ms: u64) -> Result<Vec<JobId>> {
        let mut connection = self.write();
        let tx = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|e| self.error(&e))?;
        let removed = tx
            .prepare_cached(
                "WITH ended AS (
                     SELECT sequence, finished_ms,
                         row_number() OVER newest AS place,
                         sum(result_bytes) OVER newest AS bytes
                     FROM job WHERE state <> 0
                     WINDOW newest AS (ORDER BY finished_ms DESC, sequence DESC
                         ROWS UNBOUNDED PRECEDING))
                 DELETE FROM job WHERE sequence IN (
                     SELECT sequence FROM ended
                     WHERE finished_ms < ?1 OR place > ?2 OR bytes > ?3)
                 RETURNING id",
            )
            .and_then(|mut statement| {
                statement
                    .query_map(
                        [
                            integer(now_ms.saturating_sub(retention.max_age_ms)),
                            integer(retention.max_results),
                            integer(retention.max_result_bytes),
                        ],
                        |row| row.get::<_, [u8; 16]>(0).map(JobId::from_bytes),
                    )?
                    .collect::<rusqlite::Result<Vec<_>>>()
            })
            .map_err(|e| self.error(&e))?;
        tx.commit().map_err(|e| self.error(&e))?;
        Ok(removed)
    }
}

fn take_lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|e| Error::io("open", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(folder.to_owned())),
        Err(TryLockError::Error(e)) => Err(Error::io("lock", &path, e)),
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_WAIT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // FULL: a commit is on the disk, not only in the WAL's page cache.
        connection.pragma_update(None, "synchronous", "full")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    open().map_err(|e| database_error(path, &e))
}

/// Why a database cannot be used.
enum Unusable {
    Damaged(String),
    Foreign(i64),
    Newer(i64),
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Unusable {
    fn into_error(self, path: &Path) -> Error {
        let path = path.to_owned();
        match self {
            Self::Damaged(cause) => Error::Damaged { path, cause },
            Self::Foreign(found) => Error::Foreign { path, found },
            Self::Newer(found) => Error::NewerSchema {
                path,
                found,
                known: schema::VERSION,
            },
            Self::Database(error) => database_error(&path, &error),
        }
    }
}

/// Checks the database and brings it to the newest schema. `known` says that there was a store
/// here before, so that an empty database is a damaged one (SQLite takes a file of a few bytes
/// for an empty database).
fn prepare(
    connection: &mut Connection,
    path: &Path,
    known: bool,
) -> std::result::Result<(), Unusable> {
    let version = schema::version(connection)?;
    let application = schema::application_id(connection)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != schema::APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(Unusable::Foreign(application));
    }
    if known && (application == 0 || version == 0) {
        return Err(Unusable::Damaged(
            "its header and tables are gone".to_owned(),
        ));
    }
    if version > schema::VERSION {
        return Err(Unusable::Newer(version));
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Unusable::Damaged(verdict.replace('\n', " ")));
    }
    if version < schema::VERSION {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        schema::migrate(&tx, version)?;
        tx.commit()?;
        if let Some(folder) = path.parent() {
            // Otherwise the loss of power could take the file's name away.
            sync_folder(folder).map_err(|e| Unusable::Damaged(e.to_string()))?;
        }
    }
    Ok(())
}

/// Gives a database error its type.
fn database_error(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy {
            path,
            waited_ms: BUSY_WAIT.as_millis() as u64,
        },
        Some(ErrorCode::DiskFull) => Error::DiskFull {
            path,
            action: "write to the database",
        },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::Damaged {
            path,
            cause: error.to_string(),
        },
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            Error::io(
                "use the database",
                &path,
                std::io::Error::other(error.to_string()),
            )
        }
        _ => Error::Database {
            path,
            cause: error.to_string(),
        },
    }
}
