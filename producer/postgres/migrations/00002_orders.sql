-- +goose Up
CREATE TABLE orders.orders (
	id            bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer_id   text          NOT NULL,
	total_amount  numeric(19,4) NOT NULL,
	amount_scale  smallint      NOT NULL,
	currency      text          NOT NULL,
	shipping_type text          NOT NULL,
	status        text          NOT NULL DEFAULT 'PENDING',
	attention     text,
	version       bigint        NOT NULL DEFAULT 1,
	created_event uuid          NOT NULL DEFAULT orders.uuid7(),
	saga_revision bigint        NOT NULL DEFAULT 0,
	created_at    timestamptz   NOT NULL DEFAULT clock_timestamp(),
	updated_at    timestamptz   NOT NULL DEFAULT clock_timestamp(),
	deleted_at    timestamptz,
	CONSTRAINT orders_customer_id_size CHECK (char_length(customer_id) BETWEEN 1 AND 255),
	CONSTRAINT orders_total_amount_positive CHECK (total_amount > 0),
	CONSTRAINT orders_total_amount_in_scale CHECK (amount_scale BETWEEN 0 AND 4 AND total_amount = round(total_amount, amount_scale)),
	CONSTRAINT orders_currency_code CHECK (currency ~ '^[A-Z]{3}$'),
	CONSTRAINT orders_shipping_type_known CHECK (shipping_type IN ('domestic', 'international')),
	CONSTRAINT orders_status_known CHECK (status IN ('PENDING', 'CONFIRMED', 'SHIPPED', 'DELIVERED', 'CANCELLING', 'CANCELLED', 'REJECTED')),
	CONSTRAINT orders_attention_not_empty CHECK (attention <> ''),
	CONSTRAINT orders_version_positive CHECK (version >= 1),
	CONSTRAINT orders_deleted_is_final CHECK (deleted_at IS NULL OR status IN ('DELIVERED', 'CANCELLED', 'REJECTED'))
-- Room for updates in place. No index covers status, so that moving it touches
-- no index at all.
) WITH (fillfactor = 85);

CREATE UNIQUE INDEX orders_created_event ON orders.orders (created_event);
CREATE INDEX orders_by_customer ON orders.orders (customer_id, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX orders_needing_attention ON orders.orders (id DESC) WHERE attention IS NOT NULL AND deleted_at IS NULL;

COMMENT ON TABLE orders.orders IS 'Orders as they are now; every change of status is an event in orders.outbox or news of a saga.';
COMMENT ON COLUMN orders.orders.amount_scale IS 'digits behind the point that the currency has; total_amount never has more';
COMMENT ON COLUMN orders.orders.attention IS 'why an operator is needed; null: nobody is';
COMMENT ON COLUMN orders.orders.version IS 'version of the order''s last event';
COMMENT ON COLUMN orders.orders.created_event IS 'id of the create event in orders.outbox, and of its saga';
COMMENT ON COLUMN orders.orders.saga_revision IS 'last revision of that saga that was applied';

CREATE TABLE orders.request_keys (
	key             text        PRIMARY KEY,
	request_hash    bytea       NOT NULL,
	order_id        bigint,
	response_status int,
	response_body   bytea,
	created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	CONSTRAINT request_keys_key_size CHECK (octet_length(key) BETWEEN 1 AND 255),
	CONSTRAINT request_keys_hash_size CHECK (octet_length(request_hash) = 32)
) WITH (fillfactor = 85);

CREATE INDEX request_keys_by_age ON orders.request_keys (created_at);

COMMENT ON TABLE orders.request_keys IS 'First answer to every client Idempotency-Key, given again to repetitions.';
COMMENT ON COLUMN orders.request_keys.request_hash IS 'SHA-256 of method, path and body; another one under the same key is refused';
