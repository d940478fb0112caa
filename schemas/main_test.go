package schemas_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/ebbline/ebb/schemas"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testRegistry is a registry over HTTP that can be told to fail.
type testRegistry struct {
	*srfake.Registry
	url   string
	asked atomic.Int64                     // requests so far
	fail  atomic.Pointer[http.HandlerFunc] // answers in the registry's place
}

func newRegistry(t *testing.T) *testRegistry {
	t.Helper()
	r := &testRegistry{Registry: srfake.NewRegistry()}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		if fail := r.fail.Load(); fail != nil {
			(*fail)(w, req)
			return
		}
		r.Handler().ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

func (r *testRegistry) failWith(h http.HandlerFunc) { r.fail.Store(&h) }
func (r *testRegistry) heal()                       { r.fail.Store(nil) }

func (r *testRegistry) seed(t *testing.T, id int, schema string) {
	t.Helper()
	r.SeedSchema("test-"+t.Name()+string(rune('a'+id%26)), id, id, sr.Schema{Schema: schema})
}

func newClient(t *testing.T, url string) *schemas.Client {
	t.Helper()
	c, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{url}, UnknownFor: -1})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// newCodec gives a codec whose registry has all our types.
func newCodec(t *testing.T) (*schemas.Codec, *testRegistry) {
	t.Helper()
	r := newRegistry(t)
	c := newClient(t, r.url)
	_, err := c.Register(t.Context())
	require.NoError(t, err)
	return schemas.NewCodec(c), r
}
