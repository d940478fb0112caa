package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Accept makes the slot's present position the one to go on from, whatever the state topic says: after a restore, a
// failover or a new slot, once the outbox has been compared with Kafka and repaired. It undoes a refusal by
// SlotAheadError, SystemChangedError or UnknownSlotError, and is wrong before that comparison. No relay may be
// streaming from the slot. It gives the accepted position.
func Accept(ctx context.Context, cfg Config) (Position, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return Position{}, err
	}
	conn, err := connect(ctx, cfg.DSN)
	if err != nil {
		return Position{}, err
	}
	position, err := accept(ctx, cfg, func() (System, slotState, error) {
		system, err := identify(ctx, conn)
		if err != nil {
			return System{}, slotState{}, err
		}
		slot, err := readSlot(ctx, conn, cfg.Slot)
		return system, slot, err
	})
	return position, errors.Join(err, conn.Close(ctx))
}

func accept(ctx context.Context, cfg Config, look func() (System, slotState, error)) (Position, error) {
	system, slot, err := look()
	if err != nil {
		return Position{}, err
	}
	if err := slot.usable(cfg.Slot, system.Database); err != nil {
		return Position{}, err
	}
	if slot.holder != 0 {
		return Position{}, fmt.Errorf("accept the slot: stop its reader first: %w", &slotBusyError{slot: cfg.Slot, holder: slot.holder})
	}
	client, err := kgo.NewClient(stateOptions(cfg)...)
	if err != nil {
		return Position{}, fmt.Errorf("kafka client: %w", err)
	}
	defer client.Close()
	topic := &state{client: client, topic: cfg.StateTopic}
	if err := topic.ensure(ctx); err != nil {
		return Position{}, err
	}
	e := &engine{relay: &Relay{cfg: cfg}, system: system}
	position := e.positionAt(slot.confirmed)
	return position, topic.store(ctx, position)
}
