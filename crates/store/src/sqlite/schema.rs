//! The tables, their version, and how an older version becomes this one.

use rusqlite::{Connection, Transaction};

/// `application_id` of the database: "cuzk".
pub(super) const APPLICATION_ID: i64 = 0x6375_7a6b;

/// Steps from the empty database to the newest schema; step `i` leads to version `i + 1`.
/// A step that has been released is never edited: a change is a new step.
const MIGRATIONS: &[&str] = &[include_str!("schema_1.sql")];

/// The newest version.
pub(super) const VERSION: i64 = MIGRATIONS.len() as i64;

/// The database's version.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The id of the program that made the database; 0 for none.
pub(super) fn application_id(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// Makes the missing steps, all in one transaction.
pub(super) fn migrate(transaction: &Transaction<'_>, from: i64) -> rusqlite::Result<()> {
    for (step, sql) in MIGRATIONS.iter().enumerate().skip(from.max(0) as usize) {
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", step as i64 + 1)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)
}
