-- The first form of the record. Numbers only grow; a later form is another file.

CREATE TABLE runs (
    no         INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    workflow   TEXT NOT NULL DEFAULT '',
    status     TEXT NOT NULL DEFAULT '',     -- empty until a terminal event
    supervised INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL DEFAULT '',
    ended_at   TEXT NOT NULL DEFAULT '',
    headline   TEXT NOT NULL DEFAULT '',
    opened     INTEGER NOT NULL DEFAULT 0,   -- grows: who was opened last
    last_seq   INTEGER NOT NULL DEFAULT 0,
    head       BLOB NOT NULL                 -- hash of the last event
);

-- id: the run's number shifted by 40 bits, plus the event's number in its run.
CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,
    body BLOB NOT NULL
);

-- Who drives a run. `beats` counts heartbeats, `beat_at` is the time of the last one.
CREATE TABLE leases (
    run     INTEGER PRIMARY KEY REFERENCES runs (no),
    owner   TEXT NOT NULL,
    place   TEXT NOT NULL,
    beats   INTEGER NOT NULL,
    beat_at REAL NOT NULL,
    ttl_s   REAL NOT NULL
);

CREATE TABLE commands (
    no       INTEGER PRIMARY KEY AUTOINCREMENT,
    run      INTEGER NOT NULL REFERENCES runs (no),
    kind     TEXT NOT NULL,
    body     TEXT NOT NULL,
    sent_at  TEXT NOT NULL,
    taken_at TEXT NOT NULL DEFAULT ''
);
CREATE INDEX commands_open ON commands (run, no) WHERE taken_at = '';

CREATE TABLE run_blobs (
    run    INTEGER NOT NULL REFERENCES runs (no),
    digest TEXT NOT NULL,
    size   INTEGER NOT NULL,
    PRIMARY KEY (run, digest)
) WITHOUT ROWID;
CREATE INDEX run_blobs_by_digest ON run_blobs (digest);

-- Blobs of deleted runs, until they are gone from where they lie.
CREATE TABLE doomed_blobs (digest TEXT PRIMARY KEY) WITHOUT ROWID;
