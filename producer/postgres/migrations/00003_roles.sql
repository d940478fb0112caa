-- +goose Up
-- Group roles without login: grant them to the roles that log in. Roles belong
-- to the server, so they may be there already, or be made by someone else at
-- this moment. Where roles may not be made here, this does nothing.
-- +goose StatementBegin
DO $roles$
DECLARE
	wanted text;
BEGIN
	FOREACH wanted IN ARRAY ARRAY['ebb_producer', 'ebb_cdc', 'ebb_console'] LOOP
		CONTINUE WHEN EXISTS (SELECT FROM pg_roles WHERE rolname = wanted);
		BEGIN
			EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
		EXCEPTION
			WHEN duplicate_object OR unique_violation THEN NULL;
			WHEN insufficient_privilege THEN
				RAISE NOTICE 'role % was not made: this role may not make roles', wanted;
		END;
	END LOOP;

	IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ebb_producer') THEN
		GRANT USAGE ON SCHEMA orders TO ebb_producer;
		GRANT SELECT, INSERT, UPDATE ON orders.orders TO ebb_producer;
		GRANT SELECT, INSERT ON orders.outbox TO ebb_producer;
		GRANT SELECT, INSERT, UPDATE, DELETE ON orders.request_keys TO ebb_producer;
		GRANT EXECUTE ON FUNCTION orders.outbox_make_partitions(int) TO ebb_producer;
	END IF;
	-- The role that logs in for change data capture needs REPLICATION itself:
	-- that attribute is not inherited.
	IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ebb_cdc') THEN
		GRANT USAGE ON SCHEMA orders TO ebb_cdc;
		GRANT SELECT ON orders.outbox TO ebb_cdc;
	END IF;
	IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'ebb_console') THEN
		GRANT USAGE ON SCHEMA orders TO ebb_console;
		GRANT SELECT ON orders.orders, orders.outbox TO ebb_console;
	END IF;
END
$roles$;
-- +goose StatementEnd
