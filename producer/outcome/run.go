package outcome

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxBatchBytes bounds what one compressed batch may unfold to.
const maxBatchBytes = 64 << 20

// consumer is one running Run.
type consumer struct {
	cfg    Config
	client *kgo.Client
	log    *slog.Logger
}

// Run consumes until ctx ends, then returns nil. Any other return is an error
// that trying again inside would not cure.
func Run(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...),
		kgo.ClientID("ebb-producer-outcome"),
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		// Partitions stay ours from the poll to the commit.
		kgo.BlockRebalanceOnPoll(),
		// The partitions of a member that is gone wait for as long; one that was only slow repeats, which changes nothing.
		kgo.SessionTimeout(10 * time.Second),
		kgo.HeartbeatInterval(2 * time.Second),
		kgo.RebalanceTimeout(30 * time.Second),
		kgo.MaxDecompressBatchBytes(maxBatchBytes),
	}
	client, err := kgo.NewClient(append(opts, cfg.Client...)...)
	if err != nil {
		return fmt.Errorf("outcome consumer: Kafka client: %w", err)
	}
	defer client.CloseAllowingRebalance()
	c := &consumer{cfg: cfg, client: client, log: cfg.Logger.With(slog.String("group", cfg.Group), slog.String("topic", cfg.Topic))}
	return c.loop(ctx)
}

func (c *consumer) loop(ctx context.Context) error {
	wait := c.newBackoff()
	for {
		fetches := c.client.PollRecords(ctx, c.cfg.Batch)
		records := fetches.Records()
		// What was polled together with an error is good and comes only once.
		if len(records) > 0 {
			if err := c.handle(ctx, records); err != nil {
				return endOf(ctx, err)
			}
			c.commit(ctx, records)
		}
		c.client.AllowRebalance()
		if ctx.Err() != nil {
			return nil
		}
		troubled, err := c.fetchErrors(ctx, fetches)
		if err != nil {
			return err
		}
		if !troubled {
			wait.reset()
			continue
		}
		if wait.next(ctx) != nil {
			return nil
		}
	}
}

// endOf makes the end of ctx a clean end.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// commit moves the group's offsets behind records that are done with. It goes
// on when ctx has ended: what is done need not be done again.
func (c *consumer) commit(ctx context.Context, records []*kgo.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.client.CommitRecords(ctx, records...); err != nil {
		c.log.WarnContext(ctx, "outcome consumer: offsets not committed, a later commit covers them", slog.Any("error", err))
	}
}

// fetchErrors reports whether polling met errors that may pass, and returns one
// that will not.
func (c *consumer) fetchErrors(ctx context.Context, fetches kgo.Fetches) (troubled bool, fatal error) {
	fetches.EachError(func(topic string, partition int32, err error) {
		var (
			lost   *kgo.ErrDataLoss
			broker *kerr.Error
		)
		switch {
		case errors.As(err, &lost):
			c.log.WarnContext(ctx, "outcome consumer: Kafka lost records, reading on", slog.Int("partition", int(partition)), slog.Any("error", err))
		case errors.Is(err, kgo.ErrClientClosed), errors.As(err, &broker) && !broker.Retriable && !membership(broker):
			fatal = fmt.Errorf("outcome consumer: topic %q, partition %d: %w", topic, partition, err)
		default:
			troubled = true
			c.log.WarnContext(ctx, "outcome consumer: poll failed, trying again", slog.Int("partition", int(partition)), slog.Any("error", err))
		}
	})
	return troubled, fatal
}

// membership tells errors that a member meets when its group has moved on without it, as after a restart of the coordinator: the client
// joins again by itself.
func membership(err *kerr.Error) bool {
	return errors.Is(err, kerr.UnknownMemberID) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.RebalanceInProgress)
}
