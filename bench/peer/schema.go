package peer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

const schema = `
CREATE SCHEMA bench;
CREATE TABLE bench.orders (
	id            bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer_id   text          NOT NULL,
	total_amount  numeric(19,4) NOT NULL,
	currency      text          NOT NULL,
	shipping_type text          NOT NULL,
	status        text          NOT NULL DEFAULT 'PENDING',
	created_at    timestamptz   NOT NULL DEFAULT clock_timestamp(),
	updated_at    timestamptz   NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 80);
CREATE TABLE bench.steps (
	order_id    bigint      NOT NULL,
	destination text        NOT NULL,
	direction   text        NOT NULL,
	state       text        NOT NULL,
	request     bytea       NOT NULL,
	response    bytea,
	created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (order_id, destination, direction)
) WITH (fillfactor = 80);
CREATE TABLE bench.calls (
	order_id    bigint      NOT NULL,
	destination text        NOT NULL,
	direction   text        NOT NULL,
	status      int         NOT NULL,
	reply       bytea       NOT NULL,
	started_at  timestamptz NOT NULL,
	duration_us bigint      NOT NULL,
	recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE bench.results (
	record_id   uuid        PRIMARY KEY,
	key         text        NOT NULL,
	status      int         NOT NULL,
	reply       bytea       NOT NULL,
	started_at  timestamptz NOT NULL,
	duration_us bigint      NOT NULL,
	recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);`

// Migrate makes the tables of all loops in an empty database.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, schema); err != nil {
		return fmt.Errorf("tables of the peers: %w", err)
	}
	return nil
}
