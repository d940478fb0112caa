-- +goose Up
CREATE SCHEMA IF NOT EXISTS ebb;

-- One row per event that some group has read: the bytes once, and the JSON that templates see.
CREATE TABLE ebb.events (
	id                uuid        PRIMARY KEY,
	type              text        NOT NULL,
	aggregate_type    text        NOT NULL,
	aggregate_id      text        NOT NULL,
	aggregate_version bigint      NOT NULL,
	schema_id         int         NOT NULL,
	payload           bytea       NOT NULL,
	body              bytea       NOT NULL,
	traceparent       text        NOT NULL DEFAULT '',
	created_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE ebb.events IS 'Event bytes as read from Kafka (payload) and as JSON with exact numbers (body); insert only.';

CREATE TABLE ebb.sagas (
	id                uuid        PRIMARY KEY,
	event_type        text        NOT NULL,
	role              text        NOT NULL CHECK (role IN ('create', 'change', 'cancel')),
	aggregate_type    text        NOT NULL,
	aggregate_id      text        NOT NULL,
	aggregate_version bigint      NOT NULL,
	state             text        NOT NULL CHECK (state IN ('RUNNING', 'FAILING', 'COMPENSATING', 'COMPLETED', 'COMPENSATED')),
	revision          bigint      NOT NULL,
	attention         text        NOT NULL DEFAULT '',
	reason            text        NOT NULL DEFAULT '',
	cancel_version    bigint      NOT NULL DEFAULT 0,
	late_open         boolean     NOT NULL DEFAULT false,
	failing_since     timestamptz,
	lock_key          bigint      NOT NULL,
	topic             text        NOT NULL,
	partition         int         NOT NULL,
	record_offset     bigint      NOT NULL,
	created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_at        timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80);
COMMENT ON COLUMN ebb.sagas.lock_key IS 'The advisory lock of the aggregate: FNV-1a of type, NUL, id.';
CREATE INDEX sagas_aggregate ON ebb.sagas (aggregate_type, aggregate_id, aggregate_version);
-- What transitions of other sagas of the aggregate may need; the rest of a long history is not loaded.
CREATE INDEX sagas_concern ON ebb.sagas (aggregate_type, aggregate_id)
	WHERE state IN ('RUNNING', 'FAILING', 'COMPENSATING') OR attention <> '' OR late_open OR (role = 'create' AND state = 'COMPENSATED');
COMMENT ON COLUMN ebb.sagas.late_open IS 'A step that joined later (backfill) is not settled yet.';

-- Completion order over all aggregates, asked under the aggregate's lock; the step leaves room for several successes at a time.
CREATE SEQUENCE ebb.completion INCREMENT BY 1024 CACHE 1;
CREATE INDEX sagas_failing ON ebb.sagas (failing_since) WHERE state = 'FAILING';
CREATE INDEX sagas_attention ON ebb.sagas (updated_at) WHERE attention <> '';
COMMENT ON TABLE ebb.sagas IS 'The handling of one event by its plan; id is the event id.';

CREATE TABLE ebb.steps (
	saga_id         uuid        NOT NULL,
	destination     text        NOT NULL,
	direction       text        NOT NULL CHECK (direction IN ('do', 'undo')),
	place           smallint    NOT NULL,
	state           text        NOT NULL CHECK (state IN ('EXPECTED', 'WAITING', 'READY', 'CALLING', 'RESOLVING', 'PARKED', 'SUCCEEDED', 'SKIPPED', 'REFUSED', 'ABANDONED')),
	maybe           boolean     NOT NULL DEFAULT false,
	attempt         int         NOT NULL DEFAULT 0,
	epoch           bigint      NOT NULL DEFAULT 0,
	worker          text        NOT NULL DEFAULT '',
	lease_until     timestamptz,
	next_attempt_at timestamptz,
	first_attempt_at timestamptz,
	first_sent_at   timestamptz,
	expect_by       timestamptz,
	seq             bigint      NOT NULL DEFAULT 0,
	spec_version    int         NOT NULL,
	late            boolean     NOT NULL DEFAULT false,
	superseded      boolean     NOT NULL DEFAULT false,
	outage          boolean     NOT NULL DEFAULT false,
	revert          text        NOT NULL DEFAULT '',
	outcome         text        NOT NULL DEFAULT '',
	reason          text        NOT NULL DEFAULT '',
	created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (saga_id, destination, direction)
) WITH (fillfactor = 80);
CREATE INDEX steps_due ON ebb.steps (destination, next_attempt_at) WHERE state IN ('READY', 'RESOLVING');
CREATE INDEX steps_waiting ON ebb.steps (destination) WHERE state = 'WAITING';
CREATE INDEX steps_lease ON ebb.steps (destination, lease_until) WHERE state = 'CALLING';
CREATE INDEX steps_expected ON ebb.steps (expect_by) WHERE state = 'EXPECTED';
CREATE INDEX steps_parked ON ebb.steps (destination, updated_at) WHERE state = 'PARKED';
COMMENT ON TABLE ebb.steps IS 'Result, idempotency record and work item of one direction of one destination of a saga.';
COMMENT ON COLUMN ebb.steps.epoch IS 'Counts claims; a result counts under the current epoch only, but a success is proof whoever brings it (G5).';
COMMENT ON COLUMN ebb.steps.maybe IS 'An attempt may have had its effect without our knowing (G3); only a definite answer clears it.';
COMMENT ON COLUMN ebb.steps.seq IS 'Place of the success in its aggregate''s completion order (G7).';

-- The rendered requests: stored before the first byte leaves (G3), sent byte for byte by every attempt (G4). The undo request is
-- stored with the success it undoes (G6).
CREATE TABLE ebb.requests (
	saga_id      uuid        NOT NULL,
	destination  text        NOT NULL,
	direction    text        NOT NULL CHECK (direction IN ('do', 'undo')),
	spec_version int         NOT NULL,
	route        int         NOT NULL,
	content      bytea       NOT NULL,
	created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (saga_id, destination, direction)
);
COMMENT ON TABLE ebb.requests IS 'Rendered requests without credentials; insert only.';

-- Every exchange, append only, by the day in the saga's UUIDv7.
CREATE TABLE ebb.calls (
	saga_id       uuid        NOT NULL,
	destination   text        NOT NULL,
	direction     text        NOT NULL,
	epoch         bigint      NOT NULL,
	attempt       int         NOT NULL,
	worker        text        NOT NULL,
	sent          boolean     NOT NULL,
	settled       boolean     NOT NULL,
	fenced        boolean     NOT NULL,
	class         text        NOT NULL,
	status        int         NOT NULL DEFAULT 0,
	reply_header  bytea,
	reply_body    bytea,
	error         text        NOT NULL DEFAULT '',
	started_at    timestamptz NOT NULL,
	duration_us   bigint      NOT NULL,
	recorded_at   timestamptz NOT NULL DEFAULT clock_timestamp()
) PARTITION BY RANGE (saga_id);
CREATE INDEX calls_step ON ebb.calls (saga_id, destination, direction, epoch);
CREATE TABLE ebb.calls_default PARTITION OF ebb.calls DEFAULT;
COMMENT ON TABLE ebb.calls IS 'Audit of every HTTP exchange: one row per ended attempt; insert only.';

CREATE TABLE ebb.destinations (
	name        text        NOT NULL,
	version     int         NOT NULL CHECK (version > 0),
	hash        text        NOT NULL,
	spec        bytea       NOT NULL,
	event_types text[]      NOT NULL,
	rules       jsonb       NOT NULL,
	removed     boolean     NOT NULL DEFAULT false,
	applied_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (name, version)
);
COMMENT ON TABLE ebb.destinations IS 'Versions of destination files; immutable. A row with removed ends the destination.';

CREATE TABLE ebb.destination_offsets (
	name         text   NOT NULL,
	version      int    NOT NULL,
	topic        text   NOT NULL,
	partition    int    NOT NULL,
	start_offset bigint NOT NULL,
	PRIMARY KEY (name, version, topic, partition),
	FOREIGN KEY (name, version) REFERENCES ebb.destinations (name, version)
);
COMMENT ON TABLE ebb.destination_offsets IS 'From which offset on a version is in force; a partition without a row counts from 0.';

CREATE TABLE ebb.offsets (
	reader      text        NOT NULL,
	topic       text        NOT NULL,
	topic_id    uuid        NOT NULL,
	partition   int         NOT NULL,
	next_offset bigint      NOT NULL,
	updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (reader, topic, partition)
);
COMMENT ON TABLE ebb.offsets IS 'How far a reader''s records are durable here (G2); Kafka''s committed offset follows.';

CREATE TABLE ebb.tombstones (
	aggregate_type text        NOT NULL,
	aggregate_id   text        NOT NULL,
	version        bigint      NOT NULL,
	cancel_event   uuid        NOT NULL,
	reason         text        NOT NULL DEFAULT '',
	created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (aggregate_type, aggregate_id)
);
COMMENT ON TABLE ebb.tombstones IS 'The latest cancel of an aggregate: events below its version are dead.';

CREATE TABLE ebb.workers (
	id         text        PRIMARY KEY,
	role       text        NOT NULL,
	host       text        NOT NULL,
	pid        int         NOT NULL,
	started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	seen_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE ebb.dead_letters (
	id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	reader        text        NOT NULL,
	topic         text        NOT NULL,
	partition     int         NOT NULL,
	record_offset bigint      NOT NULL,
	reason        text        NOT NULL,
	detail        text        NOT NULL,
	key           bytea,
	headers       bytea       NOT NULL,
	value         bytea,
	created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
	UNIQUE (reader, topic, partition, record_offset)
);
COMMENT ON TABLE ebb.dead_letters IS 'Records that could not be taken in, byte for byte; headers as a JSON list of [base64 name, base64 value or null].';

CREATE TABLE ebb.operator_actions (
	id     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	who    text        NOT NULL,
	action text        NOT NULL,
	target text        NOT NULL,
	reason text        NOT NULL,
	before jsonb       NOT NULL DEFAULT '{}',
	after  jsonb       NOT NULL DEFAULT '{}'
);

-- +goose StatementBegin
CREATE FUNCTION ebb.calls_make_partitions(days integer DEFAULT 14) RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET timezone = 'UTC'
AS $ebb$
DECLARE
	today constant date := clock_timestamp()::date;
	made integer := 0;
	day date;
	part text;
	low uuid;
	high uuid;
BEGIN
	PERFORM pg_advisory_xact_lock(hashtextextended('ebb.calls partitions', 0));
	FOR i IN 0 .. days LOOP
		day := today + i;
		part := 'calls_' || to_char(day, 'YYYYMMDD');
		CONTINUE WHEN to_regclass(format('ebb.%I', part)) IS NOT NULL;
		low := (lpad(to_hex(extract(epoch FROM day)::bigint * 1000), 12, '0') || repeat('0', 20))::uuid;
		high := (lpad(to_hex(extract(epoch FROM day + 1)::bigint * 1000), 12, '0') || repeat('0', 20))::uuid;
		CONTINUE WHEN EXISTS (SELECT FROM ebb.calls_default WHERE saga_id >= low AND saga_id < high);
		EXECUTE format('CREATE TABLE ebb.%I PARTITION OF ebb.calls FOR VALUES FROM (%L) TO (%L)', part, low, high);
		made := made + 1;
	END LOOP;
	RETURN made;
END
$ebb$;
-- +goose StatementEnd
SELECT ebb.calls_make_partitions();

-- +goose Down
DROP SCHEMA ebb CASCADE;
