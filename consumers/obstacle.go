package consumers

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/schemas"
)

// obstacle is what holds reading up now: all of it, or partitions.
type obstacle struct {
	mu   sync.Mutex
	all  error
	held map[intake.TopicPartition]error
}

// note keeps how taking records in went, nil for well, and gives it back.
func (o *obstacle) note(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = err
	return err
}

// read keeps how reading went, per partition: what it does not name is as it was.
func (o *obstacle) read(went map[intake.TopicPartition]error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		o.held = map[intake.TopicPartition]error{}
	}
	maps.Copy(o.held, went)
	maps.DeleteFunc(o.held, func(_ intake.TopicPartition, err error) bool { return err == nil })
}

func (o *obstacle) now() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all != nil {
		return o.all
	}
	for p, err := range o.held {
		return fmt.Errorf("%s partition %d is held: %w", p.Topic, p.Partition, err)
	}
	return nil
}

// Reading returns nil while records are taken in or none are there, else what holds them up. It is for readiness: what is not taken in
// stays in Kafka and is not lost.
func (c *Consumer) Reading() error {
	err := c.reading.now()
	if err == nil {
		return nil
	}
	if _, away := errors.AsType[*schemas.UnavailableError](err); away {
		return fmt.Errorf("waiting for the schema registry, no record is lost: %w", err)
	}
	return fmt.Errorf("records are not taken in, trying again: %w", err)
}
