-- +goose Up

-- Steps are pinned to versions: without its version a step could be neither done nor undone.
-- +goose StatementBegin
CREATE FUNCTION ebb.destinations_immutable() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $ebb$
BEGIN
	RAISE EXCEPTION 'versions of destinations are immutable'
		USING ERRCODE = 'restrict_violation', HINT = 'Change the file and run `ebb config apply`; a removed destination keeps its versions.';
END
$ebb$;
-- +goose StatementEnd
CREATE TRIGGER immutable BEFORE UPDATE OR DELETE OR TRUNCATE ON ebb.destinations
	FOR EACH STATEMENT EXECUTE FUNCTION ebb.destinations_immutable();

-- +goose Down
DROP TRIGGER immutable ON ebb.destinations;
DROP FUNCTION ebb.destinations_immutable();
