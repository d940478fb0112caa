package field

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/test/harness"
)

// world is the outside for cases about what is sent and what is answered, byte for byte: a server in the place of every destination,
// that answers as it is told and keeps what came.
type world struct {
	url    string
	answer func(seen) answer

	mu   sync.Mutex
	came []seen
}

// seen is a call as it came.
type seen struct {
	Method, Target, Key, Aggregate, Destination, Body string
	Header                                            http.Header
	// Nth counts the calls under this key from 1.
	Nth int
}

type answer struct {
	status int
	header http.Header
	body   string
}

func says(status int, body string) answer { return answer{status: status, body: body} }

func startWorld(t *testing.T, f func(seen) answer) *world {
	t.Helper()
	w := &world{answer: f}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		call := seen{
			Method: r.Method, Target: r.RequestURI, Key: r.Header.Get("Idempotency-Key"), Aggregate: r.Header.Get("X-Aggregate-Id"),
			Destination: r.Header.Get("X-Destination"), Body: string(body), Header: r.Header.Clone(),
		}
		w.mu.Lock()
		w.came = append(w.came, call)
		call.Nth = w.nth(call.Key)
		w.mu.Unlock()
		a := w.answer(call)
		for name, values := range a.header {
			rw.Header()[name] = values
		}
		rw.WriteHeader(a.status)
		_, _ = io.WriteString(rw, a.body)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) nth(key string) (n int) {
	for _, c := range w.came {
		if c.Key == key {
			n++
		}
	}
	return n
}

// calls gives what came for an aggregate at a destination, "" for any.
func (w *world) calls(aggregate, destination string) []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.came), func(c seen) bool {
		return aggregate != "" && c.Aggregate != aggregate || destination != "" && c.Destination != destination
	})
}

// targets lists them as "POST /a".
func (w *world) targets(aggregate, destination string) []string {
	var out []string
	for _, c := range w.calls(aggregate, destination) {
		out = append(out, c.Method+" "+c.Target)
	}
	return out
}

// head is how the files of these cases begin; the world's address is in WORLD_URL.
func head(name, on, more string) string {
	return fmt.Sprintf(`destination: %s
on: %s
base_url: "${env:WORLD_URL}"
auth: { bearer: "${env:FIELD_TOKEN}" }
idempotent: true
timeout: 5s
retry: { max_attempts: 4, base: 40ms, max: 200ms, retry_after: { cap: 10m } }
%s`, name, on, more)
}

// ground takes the events of orders, of which an order would otherwise have nothing to wait for.
const ground = "request: { url: /ground }\nrevert: none\n"

// pipeline starts `ebb up` on these files, by destination.
func (w *world) pipeline(t *testing.T, files map[string]string, env ...string) *stack {
	t.Helper()
	set := map[string]string{"ground": head("ground", "OrderCreated", ground)}
	for name, text := range files {
		set[name] = text
	}
	s := &stack{t: t, dir: harness.WriteDestinations(t, set)}
	s.ebb = harness.Start(t, harness.Options{
		Destinations: s.dir, Partitions: 1, Env: append([]string{"EBB_LOG_LEVEL=debug", "FIELD_TOKEN=" + canary, "WORLD_URL=" + w.url}, env...),
	})
	s.orders = s.ebb.Orders()
	return s
}

// event writes an event of somebody else's service, as plain JSON, and gives its id.
func (s *stack) event(aggregate, eventType, body string) string {
	s.t.Helper()
	id, err := uuid.NewV7()
	require.NoError(s.t, err)
	s.write(&kgo.Record{Topic: schemas.TopicOrder, Key: []byte(aggregate), Value: []byte(body), Headers: headersOf(id.String(), eventType)})
	return id.String()
}

// sagaState is "COMPENSATED" or, with attention, "RUNNING parked: why"; empty before the event was read.
func (s *stack) sagaState(id string) string {
	s.t.Helper()
	return s.text(`SELECT coalesce((SELECT state || CASE WHEN attention = '' THEN '' ELSE ' parked: ' || attention END FROM ebb.sagas WHERE id = $1::uuid), '')`, id)
}

// comesTo waits for the saga's state, or for its beginning and something of its attention.
func (s *stack) comesTo(id, state string, attention ...string) {
	s.t.Helper()
	s.until(func() (bool, string) {
		got := s.sagaState(id)
		ok := got == state || len(attention) > 0 && strings.HasPrefix(got, state+" parked: ")
		for _, text := range attention {
			ok = ok && strings.Contains(got, text)
		}
		return ok, fmt.Sprintf("saga %s is %q, not %q %v\n%s", id, got, state, attention, s.stepsOf(id))
	})
}

// stepsOf lists the saga's steps with their reasons.
func (s *stack) stepsOf(id string) string {
	s.t.Helper()
	return s.text(`SELECT coalesce(string_agg(destination || ' ' || direction || ' ' || state || ' ' || outcome || ' ' || reason, E'\n' ORDER BY destination, direction), '')
		FROM ebb.steps WHERE saga_id = $1::uuid`, id)
}

// classes lists how the attempts of a step ended, in their order.
func (s *stack) classes(id, destination string) string {
	s.t.Helper()
	return s.text(`SELECT coalesce(string_agg(class || ' ' || status, ', ' ORDER BY epoch), '') FROM ebb.calls
		WHERE saga_id = $1::uuid AND destination = $2 AND direction = 'do'`, id, destination)
}
