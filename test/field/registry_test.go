package field

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/test/harness"
)

// front stands before the schema registry and can take it away.
type front struct {
	url    string
	target atomic.Pointer[url.URL]
	status atomic.Int32 // of every answer; 0 for the registry's own, noAnswer for none
	asked  atomic.Int64
}

const noAnswer = 1

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(f.target.Load()) }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		switch status := f.status.Load(); status {
		case 0:
			proxy.ServeHTTP(w, r)
		case noAnswer:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(int(status))
		}
	}))
	t.Cleanup(func() {
		srv.Close()
		transport.CloseIdleConnections()
	})
	f.url = srv.URL
	return f
}

func (f *front) away(status int) { f.status.Store(int32(status)) }

func (f *front) back() { f.status.Store(0) }

// registry is a client of the pipeline's own registry.
func (s *stack) registry() *sr.Client {
	s.t.Helper()
	a, ok := s.ebb.Addresses()
	require.True(s.t, ok)
	c, err := sr.NewClient(sr.URLs(a.Registry...))
	require.NoError(s.t, err)
	return c
}

// register adds a schema under a subject that is not ours, and gives its id.
func (s *stack) register(subject, schema string) int {
	s.t.Helper()
	created, err := s.registry().CreateSchema(s.t.Context(), subject, sr.Schema{Schema: schema})
	require.NoError(s.t, err)
	return created.ID
}

// framed puts the header of the wire format before a body.
func framed(id int, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(id)), body...)
}

// write writes records to partition 0 in their order and gives the offset of the first.
func (s *stack) write(records ...*kgo.Record) int64 {
	s.t.Helper()
	client, _ := s.ebb.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for _, r := range records {
		require.NoError(s.t, client.ProduceSync(s.t.Context(), r).FirstErr())
	}
	return records[0].Offset
}

// headersOf are those of the contract.
func headersOf(id, eventType string) []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: schemas.HeaderID, Value: []byte(id)}, {Key: schemas.HeaderEventType, Value: []byte(eventType)},
		{Key: schemas.HeaderAggregateVersion, Value: []byte("1")},
	}
}

// startBehind is startApart with the registry behind a front, which may be away when the roles start.
func startBehind(t *testing.T, f *fixture, before *front) *apart {
	t.Helper()
	s := &stack{t: t, dir: f.write(t), sim: harness.StartSim(t)}
	s.ebb = harness.StartInfra(t, harness.Options{
		Sim: s.sim, Destinations: s.dir, Partitions: 1, Env: []string{"EBB_LOG_LEVEL=debug", "FIELD_TOKEN=" + canary},
	})
	addresses, ok := s.ebb.Addresses()
	require.True(t, ok)
	target, err := url.Parse(addresses.Registry[0])
	require.NoError(t, err)
	before.target.Store(target)
	a := &apart{stack: s, consumers: map[string][]*harness.Role{}}
	a.producer, a.relay = a.role("producer", "--registry", before.url), a.role("relay")
	a.compensator = a.role("compensator", "--registry", before.url)
	for name := range f.files {
		a.consumers[name] = append(a.consumers[name], a.role("consumer", "--destination", name, "--registry", before.url))
	}
	a.orders = harness.OrdersAt(s.ebb, a.producer)
	return a
}

// awaitReadiness waits until a role says that it is ready, or that it is not and why.
func (s *stack) awaitReadiness(r *harness.Role, status int, text string) {
	s.t.Helper()
	s.until(func() (bool, string) {
		if r.API() == "" {
			return false, r.Name() + " does not listen yet"
		}
		resp, err := http.Get(r.API() + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(s.t, err)
		got := string(body)
		return resp.StatusCode == status && (text == "" || contains(got, text)), fmt.Sprintf("%s: %d %s", r.Name(), resp.StatusCode, got)
	})
}

// deadLetters counts what a reader could not take in.
func (s *stack) deadLetters(reader string) string {
	s.t.Helper()
	return s.text(`SELECT count(*)::text FROM ebb.dead_letters WHERE reader = $1`, reader)
}

// schemaID is how a dead letter names the schema.
func schemaID(id int) string { return fmt.Sprintf("schema id %d", id) }
