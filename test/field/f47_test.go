package field

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestF47 is "schema registry outage". G10: nothing is parked or skipped because the registry is away, or refuses our credentials; who
// starts without it waits and says so; what is known needs it no more; and its return needs no restart.
func TestF47(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"no answer": noAnswer, "503": http.StatusServiceUnavailable, "401": http.StatusUnauthorized} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := newFront(t)
			registry.away(status)
			s := startBehind(t, chain(), registry)

			// c, e: at the cold start.
			for _, r := range s.all() {
				if r != s.relay { // which needs no schema
					s.awaitReadiness(r, http.StatusServiceUnavailable, "waiting for the schema registry")
				}
			}
			_, err := s.orders.CreateOnce(t.Context(), harness.ClientKey("order", 1), harness.Order{})
			var refused *harness.APIError
			require.True(t, errors.As(err, &refused), "%v", err)
			require.Equal(t, http.StatusServiceUnavailable, refused.Status)
			require.Contains(t, refused.Body, "The schema registry is not available")
			require.Equal(t, "0", s.text(`SELECT count(*)::text FROM orders.orders`))
			registry.back()
			for _, r := range s.all() {
				s.awaitReadiness(r, http.StatusOK, "")
			}
			s.completed(s.create(), 1)

			// a: with all ids known.
			registry.away(status)
			s.completed(s.create(), 1)

			// b: a new id, of an event that nobody here wants.
			id := s.register("someone", `{"type":"record","name":"Noted","namespace":"someone","fields":[{"name":"note","type":"string"}]}`)
			s.write(&kgo.Record{Topic: schemas.TopicOrder, Key: []byte("0"), Value: framed(id, []byte("\x04hi")), Headers: headersOf("0199d0f4-0000-7000-8000-000000000047", "Noted")})
			for _, list := range s.consumers {
				s.awaitReadiness(list[0], http.StatusServiceUnavailable, "waiting for the schema registry")
			}
			held, askedFor := s.create(), registry.asked.Load()
			s.until(func() (bool, string) { return registry.asked.Load() > askedFor+8, "the registry is not asked again" })
			require.Empty(t, s.calls(held, "", ""), "nothing overtakes it")
			require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.dead_letters`))
			registry.back()
			s.completed(held, 1)
			require.Equal(t, "0", s.text(`SELECT count(*)::text FROM ebb.dead_letters`))

			// d: an id that the registry does not have is a record's fault.
			asked := registry.asked.Load()
			at := s.write(&kgo.Record{Topic: schemas.TopicOrder, Key: []byte("0"), Value: framed(65535, []byte{2}), Headers: headersOf("0199d0f4-0000-7000-8000-000000000048", "Noted")})
			s.completed(s.create(), 1)
			for destination := range s.consumers {
				require.Equal(t, "schema id 65535", s.text(`SELECT substring(detail FROM 'schema id [0-9]+') FROM ebb.dead_letters
					WHERE reader = $1 AND record_offset = $2`, harness.Group(destination), at))
			}
			require.GreaterOrEqual(t, registry.asked.Load()-asked, int64(3*len(s.consumers)), "each has asked several times")
			require.Empty(t, s.effects("0", "", sim.Do))
			s.oracle()
		})
	}
}

// A producer that keeps what the registry has told it starts without it, and takes orders.
func TestF47StartOnKnownSchemas(t *testing.T) {
	t.Parallel()
	registry := newFront(t)
	s := startBehind(t, chain(), registry)
	for _, r := range s.all() {
		r.AwaitReady()
	}
	file := t.TempDir() + "/schemas.json"
	args := []string{"--registry", registry.url, "--schema-file", file}
	require.Zero(t, s.producer.Stop())
	s.producer = s.role("producer", args...)
	s.producer.AwaitReady()
	require.Zero(t, s.producer.Stop())
	registry.away(noAnswer)
	s.producer = s.role("producer", args...)
	s.producer.AwaitReady()
	s.orders = harness.OrdersAt(s.ebb, s.producer)
	s.completed(s.create(), 1)
	s.oracle()
}
