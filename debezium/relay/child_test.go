package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/debezium/relay"
)

// childVariable makes the test binary a relay process: "DSN|slot|brokers".
const childVariable = "EBB_TEST_RELAY"

// runChild runs a relay until the process is killed, and returns in an ordinary run of the tests.
func runChild() {
	spec := os.Getenv(childVariable)
	if spec == "" {
		return
	}
	part := strings.Split(spec, "|")
	err := relay.Run(context.Background(), relay.Config{
		DSN: part[0], Slot: part[1], Publication: "pub", Brokers: strings.Split(part[2], ","),
		KafkaOptions:   []kgo.Opt{kgo.MetadataMinAge(10 * time.Millisecond)},
		Mapping:        relay.Mapping{Tables: []string{"public.outbox"}, Placement: "type:header"},
		StatusInterval: 5 * time.Millisecond,
		Logger:         slog.New(slog.DiscardHandler),
	})
	fmt.Fprintln(os.Stderr, "child:", err)
	os.Exit(1)
}
