-- Times are milliseconds since the Unix epoch.
CREATE TABLE job (
    sequence      INTEGER PRIMARY KEY AUTOINCREMENT, -- order of first acceptance
    id            BLOB    NOT NULL UNIQUE,           -- 16 bytes
    name          TEXT    NOT NULL UNIQUE,           -- the client's job_id
    request_id    TEXT    NOT NULL,                  -- idempotency key, '' for none
    digest        BLOB    NOT NULL,                  -- SHA-256 of the payload
    client        TEXT    NOT NULL,
    circuit       TEXT    NOT NULL,
    priority      INTEGER NOT NULL,                  -- 1 low .. 4 critical
    deadline_ms   INTEGER,
    accepted_ms   INTEGER NOT NULL,
    submitted_ms  INTEGER NOT NULL,
    payload_bytes INTEGER NOT NULL,
    unit_bytes    INTEGER NOT NULL,
    units         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    state         INTEGER NOT NULL,                  -- 0 open, 1 completed, 2 failed, 3 cancelled
    started_ms    INTEGER,
    finished_ms   INTEGER,
    failure_code    TEXT,
    failure_message TEXT,
    load_ms       INTEGER NOT NULL DEFAULT 0,        -- sums over the proven units
    witness_ms    INTEGER NOT NULL DEFAULT 0,
    device_ms     INTEGER NOT NULL DEFAULT 0,
    test_key      INTEGER NOT NULL DEFAULT 0,
    result_bytes  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX job_identity ON job (request_id, digest) WHERE request_id <> '';
CREATE INDEX job_state ON job (state, finished_ms);
CREATE INDEX job_needs_payload ON job (digest) WHERE state = 0;

CREATE TABLE result (
    job   BLOB PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    proof BLOB NOT NULL
) STRICT;

-- A unit of an open job has a row once it has been leased. The rows go when the attempt ends.
CREATE TABLE unit (
    job        BLOB    NOT NULL REFERENCES job (id) ON DELETE CASCADE,
    position   INTEGER NOT NULL,                     -- partition number
    failures   INTEGER NOT NULL DEFAULT 0,
    token      INTEGER,                              -- the lease, all three or none
    holder     TEXT,
    expires_ms INTEGER,
    proof      BLOB,
    PRIMARY KEY (job, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX unit_holder ON unit (holder) WHERE holder IS NOT NULL;
