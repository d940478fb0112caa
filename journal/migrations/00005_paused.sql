-- +goose Up
CREATE TABLE ebb.paused_destinations (
	name      text        PRIMARY KEY,
	who       text        NOT NULL,
	reason    text        NOT NULL,
	paused_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE ebb.paused_destinations IS 'Destinations that nothing is claimed for; their records are read all the same.';

-- +goose Down
DROP TABLE ebb.paused_destinations;
