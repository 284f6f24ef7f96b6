//! The changes. Each is one or two statements whose `WHERE` is the change's condition; that no
//! row was touched means that the condition does not hold.

use rusqlite::{ErrorCode, Transaction, params};

use super::rows::{JOB_COLUMNS, integer, job_values, parameters};
use crate::Conflict;
use crate::record::{Change, End, JobId, JobRecord, LeaseRecord, Timings, UnitKey};

/// Why one change was not made.
pub(super) enum Refused {
    /// Its condition does not hold.
    Condition(Conflict),
    /// The database said no.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

type Outcome = Result<(), Refused>;

/// Makes one change.
pub(super) fn change(tx: &Transaction<'_>, change: &Change) -> Outcome {
    match change {
        Change::Insert(job) => insert(tx, job),
        Change::Join {
            job,
            submitted_ms,
            priority,
        } => touched(
            tx.prepare_cached(
                "UPDATE job SET submitted_ms = max(submitted_ms, ?2), priority = max(priority, ?3)
                 WHERE id = ?1",
            )?
            .execute(params![
                job.as_bytes(),
                integer(*submitted_ms),
                *priority as i64
            ])?,
            Conflict::JobState,
        ),
        Change::Restart {
            job,
            attempt,
            accepted_ms,
            priority,
            deadline_ms,
        } => touched(
            tx.prepare_cached(
                "UPDATE job SET attempt = ?2, accepted_ms = ?3, submitted_ms = ?3, priority = ?4,
                     deadline_ms = ?5, state = 0, started_ms = NULL, finished_ms = NULL,
                     failure_code = NULL, failure_message = NULL,
                     load_ms = 0, witness_ms = 0, device_ms = 0
                 WHERE id = ?1 AND attempt = ?2 - 1 AND state IN (2, 3)",
            )?
            .execute(params![
                job.as_bytes(),
                attempt,
                integer(*accepted_ms),
                *priority as i64,
                deadline_ms.map(integer),
            ])?,
            Conflict::JobState,
        ),
        Change::Claim {
            unit,
            lease,
            now_ms,
        } => claim(tx, unit, lease, *now_ms),
        Change::Release {
            unit,
            token,
            holder,
            failed,
        } => release(tx, unit, *token, holder, *failed),
        Change::Prove {
            unit,
            token,
            holder,
            proof,
            timings,
        } => prove(tx, unit, (*token, holder), proof, timings),
        Change::Finish {
            job,
            attempt,
            end,
            finished_ms,
        } => finish(tx, *job, *attempt, end, *finished_ms),
    }
}

fn touched(rows: usize, otherwise: Conflict) -> Outcome {
    if rows == 0 {
        Err(Refused::Condition(otherwise))
    } else {
        Ok(())
    }
}

fn insert(tx: &Transaction<'_>, job: &JobRecord) -> Outcome {
    let sql = format!(
        "INSERT INTO job ({JOB_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
         ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)"
    );
    match tx
        .prepare_cached(&sql)?
        .execute(parameters(job_values(job)))
    {
        Ok(_) => Ok(()),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Err(Refused::Condition(Conflict::JobExists))
        }
        Err(e) => Err(e.into()),
    }
}

fn claim(tx: &Transaction<'_>, unit: &UnitKey, lease: &LeaseRecord, now_ms: u64) -> Outcome {
    touched(
        tx.prepare_cached(
            "UPDATE job SET started_ms = coalesce(started_ms, ?3)
             WHERE id = ?1 AND attempt = ?2 AND state = 0",
        )?
        .execute(params![unit.job.as_bytes(), unit.attempt, integer(now_ms)])?,
        Conflict::JobState,
    )?;
    touched(
        tx.prepare_cached(
            "INSERT INTO unit (job, position, token, holder, expires_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (job, position) DO UPDATE
             SET token = excluded.token, holder = excluded.holder,
                 expires_ms = excluded.expires_ms
             WHERE proof IS NULL AND (holder IS NULL OR expires_ms <= ?6)",
        )?
        .execute(params![
            unit.job.as_bytes(),
            unit.index,
            integer(lease.token),
            lease.holder,
            integer(lease.expires_ms),
            integer(now_ms),
        ])?,
        Conflict::UnitTaken,
    )
}

fn release(
    tx: &Transaction<'_>,
    unit: &UnitKey,
    token: u64,
    holder: &str,
    failed: bool,
) -> Outcome {
    touched(
        tx.prepare_cached(
            "UPDATE unit SET token = NULL, holder = NULL, expires_ms = NULL,
                 failures = failures + ?6
             WHERE job = ?1 AND position = ?3 AND token = ?4 AND holder = ?5
                 AND EXISTS (SELECT 1 FROM job WHERE id = ?1 AND attempt = ?2 AND state = 0)",
        )?
        .execute(params![
            unit.job.as_bytes(),
            unit.attempt,
            unit.index,
            integer(token),
            holder,
            failed,
        ])?,
        Conflict::NotHolder,
    )
}

fn prove(
    tx: &Transaction<'_>,
    unit: &UnitKey,
    (token, holder): (u64, &str),
    proof: &[u8],
    timings: &Timings,
) -> Outcome {
    touched(
        tx.prepare_cached(
            "UPDATE unit SET token = NULL, holder = NULL, expires_ms = NULL, proof = ?6
             WHERE job = ?1 AND position = ?3 AND token = ?4 AND holder = ?5
                 AND EXISTS (SELECT 1 FROM job WHERE id = ?1 AND attempt = ?2 AND state = 0)",
        )?
        .execute(params![
            unit.job.as_bytes(),
            unit.attempt,
            unit.index,
            integer(token),
            holder,
            proof,
        ])?,
        Conflict::NotHolder,
    )?;
    tx.prepare_cached(
        "UPDATE job SET load_ms = load_ms + ?2, witness_ms = witness_ms + ?3,
             device_ms = device_ms + ?4
         WHERE id = ?1",
    )?
    .execute(params![
        unit.job.as_bytes(),
        integer(timings.load_ms),
        integer(timings.witness_ms),
        integer(timings.device_ms),
    ])?;
    Ok(())
}

fn finish(tx: &Transaction<'_>, job: JobId, attempt: u32, end: &End, now_ms: u64) -> Outcome {
    let (state, failure, proof, test_key) = match end {
        End::Completed { proof, test_key } => (1, None, Some(proof), *test_key),
        End::Failed(failure) => (2, Some(failure), None, false),
        End::Cancelled => (3, None, None, false),
    };
    touched(
        tx.prepare_cached(
            "UPDATE job SET state = ?3, finished_ms = ?4, failure_code = ?5, failure_message = ?6,
                 test_key = ?7, result_bytes = ?8
             WHERE id = ?1 AND attempt = ?2 AND state = 0",
        )?
        .execute(params![
            job.as_bytes(),
            attempt,
            state,
            integer(now_ms),
            failure.map(|f| &f.code),
            failure.map(|f| &f.message),
            test_key,
            proof.map_or(0, |p| integer(p.len() as u64)),
        ])?,
        Conflict::JobState,
    )?;
    tx.prepare_cached("DELETE FROM unit WHERE job = ?1")?
        .execute([job.as_bytes()])?;
    if let Some(proof) = proof {
        tx.prepare_cached("INSERT INTO result (job, proof) VALUES (?1, ?2)")?
            .execute(params![job.as_bytes(), proof])?;
    }
    Ok(())
}
