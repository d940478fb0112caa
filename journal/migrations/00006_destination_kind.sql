-- +goose Up
ALTER TABLE ebb.destinations
	ADD COLUMN kind text NOT NULL DEFAULT 'file' CHECK (kind IN ('file', 'go'));
COMMENT ON COLUMN ebb.destinations.kind IS 'Who registers the destination: a folder of files, as one set, or a Go program, each by itself.';

-- +goose Down
ALTER TABLE ebb.destinations DROP COLUMN kind;
