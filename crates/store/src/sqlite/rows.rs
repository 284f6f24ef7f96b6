//! Rows to records.

use rusqlite::types::{FromSql, Value};
use rusqlite::{Row, params_from_iter};

use crate::record::{
    Digest, Failure, JobId, JobRecord, JobState, LeaseRecord, Priority, Timings, UnitRecord,
};
use crate::{Error, Result};

/// Columns of [`job`], in its order.
pub(super) const JOB_COLUMNS: &str = "id, name, request_id, digest, client, circuit, priority, \
     deadline_ms, accepted_ms, submitted_ms, payload_bytes, unit_bytes, units, attempt, state, \
     started_ms, finished_ms, failure_code, failure_message, load_ms, witness_ms, device_ms, \
     test_key";

/// A `u64` as SQLite stores it. Values beyond `i64::MAX` (292 million years, 8 EiB) saturate.
pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The values of [`JOB_COLUMNS`].
pub(super) fn job_values(job: &JobRecord) -> Vec<Value> {
    let optional = |time: Option<u64>| time.map_or(Value::Null, |t| Value::Integer(integer(t)));
    let number = |n: u64| Value::Integer(integer(n));
    let failure = job.failure.as_ref();
    vec![
        Value::Blob(job.id.as_bytes().to_vec()),
        Value::Text(job.name.clone()),
        Value::Text(job.request_id.clone()),
        Value::Blob(job.digest.as_bytes().to_vec()),
        Value::Text(job.client.clone()),
        Value::Text(job.circuit.clone()),
        Value::Integer(job.priority as i64),
        optional(job.deadline_ms),
        number(job.accepted_ms),
        number(job.submitted_ms),
        number(job.payload_bytes),
        number(job.unit_bytes),
        number(u64::from(job.units)),
        number(u64::from(job.attempt)),
        Value::Integer(job.state as i64),
        optional(job.started_ms),
        optional(job.finished_ms),
        failure.map_or(Value::Null, |f| Value::Text(f.code.clone())),
        failure.map_or(Value::Null, |f| Value::Text(f.message.clone())),
        number(job.timings.load_ms),
        number(job.timings.witness_ms),
        number(job.timings.device_ms),
        Value::Integer(i64::from(job.test_key)),
    ]
}

/// Parameters from a list of values.
pub(super) fn parameters(values: Vec<Value>) -> impl rusqlite::Params {
    params_from_iter(values)
}

/// Reads columns one after the other, with an error that names the job and the column.
struct Reader<'a> {
    row: &'a Row<'a>,
    next: usize,
    job: String,
}

impl Reader<'_> {
    fn take<T: FromSql>(&mut self, field: &'static str) -> Result<T> {
        let value = self
            .row
            .get(self.next)
            .map_err(|e| self.invalid(field, e.to_string()))?;
        self.next += 1;
        Ok(value)
    }

    fn number<T: TryFrom<i64>>(&mut self, field: &'static str) -> Result<T> {
        let value: i64 = self.take(field)?;
        T::try_from(value).map_err(|_| self.invalid(field, format!("{value} is out of range")))
    }

    fn time(&mut self, field: &'static str) -> Result<Option<u64>> {
        let value: Option<i64> = self.take(field)?;
        value
            .map(|v| u64::try_from(v).map_err(|_| self.invalid(field, format!("{v} is negative"))))
            .transpose()
    }

    fn bytes<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let bytes: Vec<u8> = self.take(field)?;
        let length = bytes.len();
        bytes
            .try_into()
            .map_err(|_| self.invalid(field, format!("{length} bytes, not {N}")))
    }

    fn known<T>(&self, field: &'static str, number: i64, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.invalid(field, format!("{number} is none of the known numbers")))
    }

    fn invalid(&self, field: &'static str, cause: String) -> Error {
        Error::InvalidRecord {
            job: self.job.clone(),
            field,
            cause,
        }
    }
}

/// A job from a row of [`JOB_COLUMNS`].
pub(super) fn job(row: &Row<'_>) -> Result<JobRecord> {
    let mut read = Reader {
        row,
        next: 0,
        job: "(unreadable id)".to_owned(),
    };
    let id = JobId::from_bytes(read.bytes("id")?);
    read.job = id.to_string();
    let name = read.take("name")?;
    let request_id = read.take("request_id")?;
    let digest = Digest::new(read.bytes("digest")?);
    let client = read.take("client")?;
    let circuit = read.take("circuit")?;
    let priority: i64 = read.take("priority")?;
    let priority = read.known("priority", priority, Priority::from_number(priority))?;
    let deadline_ms = read.time("deadline_ms")?;
    let accepted_ms = read.number("accepted_ms")?;
    let submitted_ms = read.number("submitted_ms")?;
    let payload_bytes = read.number("payload_bytes")?;
    let unit_bytes = read.number("unit_bytes")?;
    let units = read.number("units")?;
    let attempt = read.number("attempt")?;
    let state: i64 = read.take("state")?;
    let state = read.known("state", state, JobState::from_number(state))?;
    let started_ms = read.time("started_ms")?;
    let finished_ms = read.time("finished_ms")?;
    let code: Option<String> = read.take("failure_code")?;
    let message: Option<String> = read.take("failure_message")?;
    let timings = Timings {
        load_ms: read.number("load_ms")?,
        witness_ms: read.number("witness_ms")?,
        device_ms: read.number("device_ms")?,
    };
    let test_key = read.number::<i64>("test_key")? != 0;
    let failure = code
        .zip(message)
        .map(|(code, message)| Failure { code, message });
    Ok(JobRecord {
        id,
        name,
        request_id,
        digest,
        client,
        circuit,
        priority,
        deadline_ms,
        accepted_ms,
        submitted_ms,
        payload_bytes,
        unit_bytes,
        units,
        attempt,
        state,
        started_ms,
        finished_ms,
        failure,
        timings,
        test_key,
    })
}

/// A unit, with the job it belongs to, from a row of
/// `job, position, failures, token, holder, expires_ms, proof IS NOT NULL`.
pub(super) fn unit(row: &Row<'_>) -> Result<(JobId, UnitRecord)> {
    let mut read = Reader {
        row,
        next: 0,
        job: "(unreadable id)".to_owned(),
    };
    let job = JobId::from_bytes(read.bytes("unit.job")?);
    read.job = job.to_string();
    let index = read.number("unit.position")?;
    let failures = read.number("unit.failures")?;
    let token = read.time("unit.token")?;
    let holder: Option<String> = read.take("unit.holder")?;
    let expires_ms = read.time("unit.expires_ms")?;
    let proven = read.number::<i64>("unit.proof")? != 0;
    let lease = match (token, holder, expires_ms) {
        (Some(token), Some(holder), Some(expires_ms)) => Some(LeaseRecord {
            token,
            holder,
            expires_ms,
        }),
        _ => None,
    };
    Ok((
        job,
        UnitRecord {
            index,
            failures,
            lease,
            proven,
        },
    ))
}
