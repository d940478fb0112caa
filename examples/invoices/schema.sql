CREATE SCHEMA IF NOT EXISTS invoices;
CREATE TABLE IF NOT EXISTS invoices.invoices (
	id        bigint        GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	customer  text          NOT NULL,
	total     numeric(19,4) NOT NULL,
	currency  char(3)       NOT NULL,
	issued_at timestamptz   NOT NULL DEFAULT clock_timestamp()
);
