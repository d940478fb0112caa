package relay

import (
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTrackerNeverPassesWhatIsMissing drives the tracker with random transactions, acknowledgements in random order,
// broken streams and keepalives, and compares its position with a model that keeps everything.
func TestTrackerNeverPassesWhatIsMissing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			tx      *transaction
			end     pglogrepl.LSN // 0: abandoned or open
			pending int
			ended   bool
		}
		var (
			tracker tracker
			model   []*entry
			flight  []*entry // one per record on its way
			open    *entry
			next    = pglogrepl.LSN(100)
			start   = pglogrepl.LSN(50)
		)
		tracker.start(start)
		want := func() pglogrepl.LSN {
			at := start
			for _, e := range model {
				if !e.ended || e.pending > 0 {
					break
				}
				at = max(at, e.end)
			}
			return at
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if open == nil {
					open = &entry{tx: tracker.open(time.Now())}
					model = append(model, open)
				}
			},
			"row": func(t *rapid.T) {
				if open != nil {
					tracker.add(open.tx)
					open.pending++
					flight = append(flight, open)
				}
			},
			"commit": func(t *rapid.T) {
				if open != nil {
					next += pglogrepl.LSN(rapid.IntRange(1, 9).Draw(t, "size"))
					tracker.commit(open.tx, next)
					open.end, open.ended, open = next, true, nil
				}
			},
			"break": func(t *rapid.T) {
				if open != nil {
					tracker.abandon(open.tx)
					open.ended, open = true, nil
				}
			},
			"keepalive": func(t *rapid.T) {
				if open == nil {
					next += pglogrepl.LSN(rapid.IntRange(0, 9).Draw(t, "size"))
					tracker.idle(next, time.Now())
					model = append(model, &entry{end: next, ended: true})
				}
			},
			"ack": func(t *rapid.T) {
				if len(flight) > 0 {
					i := rapid.IntRange(0, len(flight)-1).Draw(t, "which")
					e := flight[i]
					flight = append(flight[:i], flight[i+1:]...)
					e.pending--
					tracker.ack(e.tx)
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, want(), tracker.position())
				records, _ := tracker.waiting()
				require.Equal(t, len(flight), records)
			},
		})
		for _, e := range flight {
			e.pending--
			tracker.ack(e.tx)
		}
		require.Equal(t, want(), tracker.position(), "when all is acknowledged")
	})
}
