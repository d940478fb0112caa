-- +goose Up
ALTER TABLE ebb.steps
	ADD COLUMN asking boolean NOT NULL DEFAULT false,
	ADD COLUMN sent_until timestamptz;
COMMENT ON COLUMN ebb.steps.asking IS 'The claim looks the step up at its destination instead of sending its request.';
COMMENT ON COLUMN ebb.steps.sent_until IS 'When the lease of the last attempt ran out that may have sent the request: a lookup that finds nothing counts later only (G3).';

-- +goose Down
ALTER TABLE ebb.steps DROP COLUMN asking, DROP COLUMN sent_until;
