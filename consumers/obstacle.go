package consumers

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ebbline/ebb/schemas"
)

// obstacle is what holds reading up now.
type obstacle struct {
	mu  sync.Mutex
	err error
}

// note keeps how taking records in went, nil for well, and gives it back.
func (o *obstacle) note(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
	return err
}

// Reading returns nil while records are taken in or none are there, else what holds them up. It is for readiness: what is not taken in
// stays in Kafka and is not lost.
func (c *Consumer) Reading() error {
	c.reading.mu.Lock()
	defer c.reading.mu.Unlock()
	var away *schemas.UnavailableError
	switch {
	case c.reading.err == nil:
		return nil
	case errors.As(c.reading.err, &away):
		return fmt.Errorf("waiting for the schema registry, no record is lost: %w", c.reading.err)
	}
	return fmt.Errorf("records are not taken in, trying again: %w", c.reading.err)
}
