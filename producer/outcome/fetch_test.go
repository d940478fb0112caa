package outcome

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestWhichFetchErrorsEndTheConsumer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		err             error
		troubled, fatal bool
	}{
		{"the coordinator has lost its members", &kgo.ErrGroupSession{Err: kerr.UnknownMemberID}, true, false},
		{"the group has moved on", &kgo.ErrGroupSession{Err: kerr.IllegalGeneration}, true, false},
		{"the group is moving", &kgo.ErrGroupSession{Err: kerr.RebalanceInProgress}, true, false},
		{"the coordinator is away", &kgo.ErrGroupSession{Err: errors.New("connection refused")}, true, false},
		{"a broker is busy", kerr.NotLeaderForPartition, true, false},
		{"records are lost", &kgo.ErrDataLoss{Topic: "t"}, false, false},
		{"the group is not ours to join", &kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}, false, true},
		{"the topic is not ours to read", kerr.TopicAuthorizationFailed, false, true},
		{"the client is closed", kgo.ErrClientClosed, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &consumer{log: slog.New(slog.DiscardHandler)}
			troubled, fatal := c.fetchErrors(t.Context(), kgo.NewErrFetch(tt.err))
			require.Equal(t, tt.troubled, troubled)
			require.Equal(t, tt.fatal, fatal != nil, "%v", fatal)
		})
	}
}
