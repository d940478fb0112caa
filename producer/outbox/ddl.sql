DO $ebb$
BEGIN
	-- Not CREATE SCHEMA IF NOT EXISTS: that needs the right to create schemas
	-- even where the schema is there.
	IF to_regnamespace('{schema}') IS NULL THEN
		CREATE SCHEMA "{schema}";
	END IF;
END
$ebb$;

-- 48 bits of milliseconds, the version, 12 bits of the fraction below, variant
-- and 62 random bits: ids of one server sort by time to a quarter of a
-- microsecond. One plain expression, so that it is inlined where it is used; the
-- clock is read once, in units of 1/4096 ms, which are 12 + 3 hexadecimal digits.
CREATE OR REPLACE FUNCTION "{schema}".uuid7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $ebb$
	SELECT (
		overlay(lpad(to_hex(floor(extract(epoch FROM clock_timestamp()) * 4096000)::bigint), 15, '0') PLACING '7' FROM 13 FOR 0)
		|| substr(gen_random_uuid()::text, 20)
	)::uuid
$ebb$;
COMMENT ON FUNCTION "{schema}".uuid7() IS
	'A UUIDv7 from the clock of this server.';

CREATE TABLE IF NOT EXISTS "{schema}"."{table}" (
	id             uuid        NOT NULL,
	aggregatetype  text        NOT NULL,
	aggregateid    text        NOT NULL,
	type           text        NOT NULL,
	payload        bytea       {payload_null},
	version        bigint      NOT NULL,
	schema_version int         NOT NULL,
	traceparent    text,
	created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	CONSTRAINT "{table}_pkey" PRIMARY KEY (id),
	CONSTRAINT "{table}_aggregatetype_is_topic" CHECK (aggregatetype ~ '{aggregate_type}'),
	CONSTRAINT "{table}_aggregateid_size" CHECK (octet_length(aggregateid) BETWEEN 1 AND {max_key}),
	CONSTRAINT "{table}_type_size" CHECK (octet_length(type) BETWEEN 1 AND {max_type}),
	CONSTRAINT "{table}_payload_size" CHECK (octet_length(payload) <= {max_payload}),
	CONSTRAINT "{table}_version_not_negative" CHECK (version >= 0),
	CONSTRAINT "{table}_schema_version_not_negative" CHECK (schema_version >= 0),
	CONSTRAINT "{table}_traceparent_size" CHECK (octet_length(traceparent) BETWEEN 1 AND {max_trace})
) PARTITION BY RANGE (id);

COMMENT ON TABLE "{schema}"."{table}" IS
	'Transactional outbox: one row is one event. Insert only; old days are dropped as partitions once every replication slot has passed them.';
COMMENT ON COLUMN "{schema}"."{table}".id IS 'UUIDv7, the event id for ever; record header id';
COMMENT ON COLUMN "{schema}"."{table}".aggregatetype IS 'record topic outbox.event.<aggregatetype>';
COMMENT ON COLUMN "{schema}"."{table}".aggregateid IS 'record key';
COMMENT ON COLUMN "{schema}"."{table}".type IS 'record header eventType';
COMMENT ON COLUMN "{schema}"."{table}".payload IS 'record value, byte for byte';
COMMENT ON COLUMN "{schema}"."{table}".version IS 'version of the aggregate after this event; record header aggregateVersion';
COMMENT ON COLUMN "{schema}"."{table}".schema_version IS 'version of the payload schema; record header schemaVersion';
COMMENT ON COLUMN "{schema}"."{table}".traceparent IS 'W3C trace parent; record header traceparent';
COMMENT ON COLUMN "{schema}"."{table}".created_at IS 'when the row was written; not published';

CREATE TABLE IF NOT EXISTS "{schema}"."{table}_default" PARTITION OF "{schema}"."{table}" DEFAULT;
COMMENT ON TABLE "{schema}"."{table}_default" IS
	'Rows whose id belongs to no day that has a partition. Should be empty: call {schema}.{table}_make_partitions.';

CREATE OR REPLACE FUNCTION "{schema}"."{table}_refuse_update"() RETURNS trigger
LANGUAGE plpgsql
AS $ebb$
BEGIN
	RAISE EXCEPTION '{schema}.{table} is insert only: row % was not changed', OLD.id
		USING ERRCODE = 'restrict_violation',
		HINT = 'Insert a new event. A changed row is dropped by the change stream or published twice.';
END
$ebb$;

CREATE OR REPLACE TRIGGER "{table}_refuse_update" BEFORE UPDATE ON "{schema}"."{table}"
	FOR EACH ROW EXECUTE FUNCTION "{schema}"."{table}_refuse_update"();

REVOKE UPDATE, TRUNCATE ON "{schema}"."{table}" FROM PUBLIC;
-- The owner has every right by default; this takes the one that breaks the
-- stream from it, too.
REVOKE UPDATE ON "{schema}"."{table}" FROM CURRENT_USER;

CREATE OR REPLACE FUNCTION "{schema}"."{table}_make_partitions"(days integer DEFAULT {days}) RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '10s'
SET timezone = 'UTC'
AS $ebb$
DECLARE
	today constant date := clock_timestamp()::date;
	made integer := 0;
	day date;
	part text;
	low uuid;
	high uuid;
	taken boolean;
BEGIN
	IF days IS NULL OR days NOT BETWEEN 0 AND 366 THEN
		RAISE EXCEPTION '{schema}.{table}_make_partitions: days is %, allowed are 0 to 366', coalesce(days::text, 'null')
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	PERFORM pg_advisory_xact_lock(hashtextextended('ebb outbox partitions {schema}.{table}', 0));
	FOR i IN 0 .. days LOOP
		day := today + i;
		part := '{table}_' || to_char(day, 'YYYYMMDD');
		CONTINUE WHEN to_regclass(format('%I.%I', '{schema}', part)) IS NOT NULL;
		low := (lpad(to_hex(extract(epoch FROM day)::bigint * 1000), 12, '0') || repeat('0', 20))::uuid;
		high := (lpad(to_hex(extract(epoch FROM day + 1)::bigint * 1000), 12, '0') || repeat('0', 20))::uuid;
		-- Such a day stays in the default partition: moving its rows would be a
		-- second insert, and the change stream would publish them again.
		SELECT EXISTS (SELECT FROM "{schema}"."{table}_default" WHERE id >= low AND id < high) INTO taken;
		IF taken THEN
			RAISE WARNING '{schema}.{table}: no partition for %, the default partition already has rows of that day', day
				USING HINT = 'Call {schema}.{table}_make_partitions more often than every {days} days.';
			CONTINUE;
		END IF;
		-- LIKE and ATTACH, not PARTITION OF: that would lock out all writers.
		EXECUTE format('CREATE TABLE %I.%I (LIKE %I.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', '{schema}', part, '{schema}', '{table}');
		EXECUTE format('REVOKE UPDATE ON %I.%I FROM CURRENT_USER', '{schema}', part);
		EXECUTE format('ALTER TABLE %I.%I ATTACH PARTITION %I.%I FOR VALUES FROM (%L) TO (%L)', '{schema}', '{table}', '{schema}', part, low, high);
		made := made + 1;
	END LOOP;
	RETURN made;
END
$ebb$;
COMMENT ON FUNCTION "{schema}"."{table}_make_partitions"(integer) IS
	'Makes the missing daily partitions from today (UTC) to today plus days; returns how many.';
REVOKE EXECUTE ON FUNCTION "{schema}"."{table}_make_partitions"(integer) FROM PUBLIC;

SELECT "{schema}"."{table}_make_partitions"();
