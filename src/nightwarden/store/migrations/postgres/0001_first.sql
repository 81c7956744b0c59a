-- The first form of the record. Numbers only grow; a later form is another file.

CREATE TABLE runs (
    no         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    workflow   TEXT NOT NULL DEFAULT '',
    status     TEXT NOT NULL DEFAULT '',     -- empty until a terminal event
    supervised INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL DEFAULT '',
    ended_at   TEXT NOT NULL DEFAULT '',
    headline   TEXT NOT NULL DEFAULT '',
    opened     BIGINT NOT NULL DEFAULT 0,    -- grows: who was opened last
    last_seq   BIGINT NOT NULL DEFAULT 0,
    head       BYTEA NOT NULL                -- hash of the last event
);

-- id: the run's number shifted by 40 bits, plus the event's number in its run.
CREATE TABLE events (
    id   BIGINT PRIMARY KEY,
    hash BYTEA NOT NULL,
    body BYTEA NOT NULL
);

-- Who drives a run. `beats` counts heartbeats, `beat_at` is the time of the last one.
CREATE TABLE leases (
    run     BIGINT PRIMARY KEY REFERENCES runs (no),
    owner   TEXT NOT NULL,
    place   TEXT NOT NULL,
    beats   BIGINT NOT NULL,
    beat_at DOUBLE PRECISION NOT NULL,
    ttl_s   DOUBLE PRECISION NOT NULL
);

CREATE TABLE commands (
    no       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run      BIGINT NOT NULL REFERENCES runs (no),
    kind     TEXT NOT NULL,
    body     TEXT NOT NULL,
    sent_at  TEXT NOT NULL,
    taken_at TEXT NOT NULL DEFAULT ''
);
CREATE INDEX commands_open ON commands (run, no) WHERE taken_at = '';

CREATE TABLE run_blobs (
    run    BIGINT NOT NULL REFERENCES runs (no),
    digest TEXT NOT NULL,
    size   BIGINT NOT NULL,
    PRIMARY KEY (run, digest)
);
CREATE INDEX run_blobs_by_digest ON run_blobs (digest);

-- Blobs of deleted runs, until they are gone from where they lie.
CREATE TABLE doomed_blobs (digest TEXT PRIMARY KEY);
