package relay_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/failpoint"
)

// TestG12KillLosesNothing kills the relay at every place where its knowledge and the outside differ, with rows being
// written meanwhile, and starts it again. Every committed row must arrive, in order per key, and copies must be equal.
func TestG12KillLosesNothing(t *testing.T) {
	t.Parallel()
	const topic = "outbox.event.o"
	for _, fault := range []string{
		"relay.produced=kill@700", "relay.acked=kill@700",
		"relay.before_store=kill@2", "relay.stored=kill@2", "relay.before_confirm=kill@6",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b := setup(t, goldenTable, "type:header", map[string]int32{topic: 4})
			const rows = 2000
			var wg sync.WaitGroup
			wg.Go(func() { b.write(t, rows) })
			killed := b.child(t, fault)
			require.Equal(t, syscall.SIGKILL, killed)
			wg.Wait()

			b.start(t)
			total := int(b.settled(t, topic))
			require.GreaterOrEqual(t, total, rows)
			b.checkDelivered(t, topic, total, rows)
			t.Logf("%d copies", total-rows)
		})
	}
}

// write inserts numbered rows, one to three a transaction, over seven keys.
func (b *bundle) write(t *testing.T, rows int) {
	ctx := context.Background()
	for i := 0; i < rows; {
		n := min(1+i%3, rows-i)
		_, err := b.pool.Exec(ctx, `INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
			SELECT lpad(i::text, 32, '0')::uuid, 'o', (i % 7)::text, 't', convert_to('payload ' || i, 'UTF8')
			FROM generate_series($1::int, $2::int) i ORDER BY i`, i, i+n-1)
		if err != nil {
			t.Error(err) // not require: this is not the test's goroutine
			return
		}
		i += n
	}
}

// child runs a relay process with a fault and gives the signal that ended it.
func (b *bundle) child(t *testing.T, fault string) syscall.Signal {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), failpoint.EnvVar+"="+fault,
		childVariable+"="+b.dsn+"|"+b.cfg.Slot+"|"+strings.Join(b.cfg.Brokers, ","))
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "failpoint")
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.True(t, status.Signaled(), string(out))
	return status.Signal()
}

// checkDelivered reads all records: each row at least once, first appearances in order per key, copies equal.
func (b *bundle) checkDelivered(t *testing.T, topic string, total, rows int) {
	t.Helper()
	seen := map[string]string{}
	newest := map[string]string{} // by key
	for _, r := range b.read(t, topic, total) {
		id := string(r.Headers[0].Value)
		body := fmt.Sprintf("%s %s %v", r.Key, r.Value, r.Headers)
		if before, again := seen[id]; again {
			require.Equal(t, before, body, "a copy of %s differs", id)
			continue
		}
		seen[id] = body
		require.Greater(t, id, newest[string(r.Key)], "order of key %s", r.Key)
		newest[string(r.Key)] = id
	}
	require.Len(t, seen, rows)
}
