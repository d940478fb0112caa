package consumers

import (
	"context"
	"errors"
	"time"

	"github.com/ebbline/ebb/schemas"
)

const (
	// unknownTries is how often a schema is asked for that the registry does not know, which may lag behind the record's writer.
	unknownTries = 3
	// unknownEvery is the time between them, longer than the registry client remembers that an id was not known.
	unknownEvery = 1100 * time.Millisecond
	// unknownFor is how long no record waits for such an id any more, so that many of them hold a partition as long as one.
	unknownFor = time.Minute
	// mostUnknown bounds the memory that ids of hostile records can take.
	mostUnknown = 1024
)

// unknownIDs are schema ids that were asked for in vain; only the reading loop uses them.
type unknownIDs map[int]time.Time

func (u unknownIDs) has(id int) bool {
	at, ok := u[id]
	return ok && time.Since(at) < unknownFor
}

func (u unknownIDs) add(id int) {
	if len(u) >= mostUnknown {
		clear(u)
	}
	u[id] = time.Now()
}

// decode gives the event as JSON, or says what is wrong with the value. An error is temporary and nobody's fault: the registry is away.
func (c *Consumer) decode(ctx context.Context, value []byte) (decoded schemas.Decoded, fault string, err error) {
	decoded, err = c.askForUnknown(ctx, value)
	var poison *schemas.DecodeError
	var unknown *schemas.UnknownSchemaError
	switch {
	case err == nil:
		return decoded, "", nil
	case errors.As(err, &poison):
		return decoded, poison.Error(), nil
	case errors.As(err, &unknown):
		return decoded, unknown.Error(), nil
	}
	return decoded, "", err
}

// askForUnknown decodes, and asks again for a schema that the registry does not know.
func (c *Consumer) askForUnknown(ctx context.Context, value []byte) (schemas.Decoded, error) {
	for try := 1; ; try++ {
		decoded, err := c.cfg.Decoder.Decode(ctx, value)
		var unknown *schemas.UnknownSchemaError
		if !errors.As(err, &unknown) || c.unknown.has(unknown.ID) {
			return decoded, err
		}
		if try == unknownTries {
			c.unknown.add(unknown.ID)
			return decoded, err
		}
		select {
		case <-ctx.Done():
			return decoded, ctx.Err()
		case <-time.After(unknownEvery):
		}
	}
}
