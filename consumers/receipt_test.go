package consumers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/internal/testkit/stream"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// How an attempt ended is stored whatever the destination says: its bytes are kept as they are, and its texts are made fit.
func TestEndsAreStoredWhateverTheySay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bodies := []string{
		"", "\x00", `{"note":"\u0000"}`, "\xff\xfe", "<html>", `{"b":1,"a":1,"b":2}`, strings.Repeat("x", 1<<20), `{"id":1e999999999}`, "null",
	}
	texts := []string{"", "a\x00b", "\xff", strings.Repeat("ä", 5000), "\U0001F600", "line\nbreak"}
	b.world.on(func(_ context.Context, c consumers.Call, _ int) consumers.Ended {
		var n int
		_, _ = fmt.Sscan(c.Aggregate.ID, &n)
		if c.Attempt == 1 {
			reason := texts[n%len(texts)]
			return consumers.Ended{Class: saga.ClassUnknown, Reason: reason, Exchange: journal.Exchange{Sent: true, Status: 500, Err: reason, Body: []byte(bodies[n])}}
		}
		end := b.world.yes(c)
		end.Exchange.Body = []byte(bodies[n])
		end.Exchange.Header = []byte("\x00\xff")
		return end
	})
	run := b.start()
	b.create(0, int64(len(bodies)-1))
	b.awaitCompleted(len(bodies))
	run.end()
	for n, body := range bodies {
		var kept []byte
		require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT reply_body FROM ebb.calls WHERE saga_id = $1 AND settled", stream.EventID(int64(n))).Scan(&kept))
		require.Equal(t, body, string(kept), "body %d", n)
	}
	require.NotContains(t, b.logs.String(), "could not be stored")
	require.Equal(t, 2*len(bodies), b.count("SELECT count(*) FROM ebb.calls"))
}

// A success that the database refuses as it is has happened all the same: it is known without its reply, parks if it has to be undone,
// and takes nobody else's receipt with it.
func TestSuccessThatTheDatabaseRefusesIsKnown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const orders, odd = 12, 5
	_, err := b.pool.Exec(t.Context(), `ALTER TABLE ebb.calls ADD CHECK (position('ch-5"' IN encode(reply_body, 'escape')) = 0)`)
	require.NoError(t, err)
	run := b.start()
	b.create(1, orders)
	b.awaitCompleted(orders)
	require.Equal(t, orders, b.world.count(), "nothing is sent again for it")
	require.Equal(t, step{State: "SUCCEEDED", Attempt: 1, Epoch: 1}, b.step(odd))
	note := ""
	require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT error FROM ebb.calls WHERE saga_id = $1", stream.EventID(odd)).Scan(&note))
	require.Contains(t, note, "stored without its reply: status 200")
	require.Equal(t, orders-1, b.count("SELECT count(*) FROM ebb.requests WHERE direction = 'undo'"), "the others have theirs")

	require.NoError(t, b.store.Compensate(t.Context(), journal.Reader{Name: "ebb.compensator"}, []journal.Signal{{
		Position: journal.Position{Topic: "t"},
		Cancel:   &journal.Cancel{Event: saga.ID{15: 9}, Aggregate: journal.Key{Type: "order", ID: "5"}, Version: 2, Reason: "customer"},
	}}))
	_, err = b.store.Sweep(t.Context(), 0, 10)
	require.NoError(t, err)
	b.until(func() (bool, string) {
		return b.count("SELECT count(*) FROM ebb.sagas WHERE id = $1 AND state = 'COMPENSATING' AND attention <> ''", stream.EventID(odd)) == 1, "no attention"
	})
	run.end()
	require.Equal(t, orders, b.world.count(), "no undo without what it needs")
}
