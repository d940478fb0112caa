package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/httpapi"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type sagas struct {
	value any
	err   error
}

func (s sagas) OrderSagas(context.Context, string) (any, error) { return s.value, s.err }

type bundle struct {
	*testing.T
	api   *httpapi.API
	store *postgres.Store
}

func setup(t *testing.T) bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, postgres.Migrate(t.Context(), dsn))
	store, err := postgres.New(postgres.Config{Pool: testkit.Pool(t, dsn), Encoder: orders.Encoder{}})
	require.NoError(t, err)
	api, err := httpapi.New(httpapi.Config{Store: store, CurrencyScale: orders.Scale})
	require.NoError(t, err)
	return bundle{T: t, api: api, store: store}
}

type answer struct {
	status int
	header http.Header
	text   string
}

// call sends one request; headers are pairs of name and value.
func call(t *testing.T, api http.Handler, method, path, body string, headers ...string) answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, reader)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return answer{status: w.Code, header: w.Header(), text: w.Body.String()}
}

func (b bundle) call(method, path, body string, headers ...string) answer {
	b.Helper()
	return call(b.T, b.api, method, path, body, headers...)
}

func (a answer) decode(t *testing.T) map[string]any {
	t.Helper()
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	decoder := json.NewDecoder(strings.NewReader(a.text))
	decoder.UseNumber()
	var v map[string]any
	require.NoError(t, decoder.Decode(&v), a.text)
	return v
}

// problem checks the envelope of an error and returns its fields' problems.
func (a answer) problem(t *testing.T, status int) map[string]string {
	t.Helper()
	require.Equal(t, status, a.status, a.text)
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	v := a.decode(t)
	require.Equal(t, fmt.Sprint(status), fmt.Sprint(v["status"]))
	require.Contains(t, v["type"], "urn:ebb:problem:")
	require.NotEmpty(t, v["title"])
	require.NotEmpty(t, v["detail"])
	require.Regexp(t, `^urn:uuid:[0-9a-f-]{36}$`, v["instance"])
	fields := map[string]string{}
	if list, ok := v["errors"].([]any); ok {
		for _, entry := range list {
			e := entry.(map[string]any)
			fields[e["field"].(string)] = e["detail"].(string)
		}
	}
	return fields
}

const goodOrder = `{"customerId":"customer-1","totalAmount":99.90,"currency":"EUR","shippingType":"domestic"}`

func (b bundle) create() string {
	b.Helper()
	a := b.call("POST", "/api/orders", goodOrder)
	require.Equal(b.T, http.StatusCreated, a.status, a.text)
	return a.header.Get("Location")
}

// settle applies an outcome of the order's saga.
func (b bundle) settle(path string, kind order.Trigger) {
	b.Helper()
	v := b.call("GET", path, "").decode(b.T)
	id, err := v["id"].(json.Number).Int64()
	require.NoError(b.T, err)
	o, err := b.store.Get(b.Context(), id)
	require.NoError(b.T, err)
	_, err = b.store.ApplyOutcomes(b.Context(), []order.Outcome{{OrderID: id, SagaID: o.CreatedEvent, Kind: kind, Revision: o.SagaRevision + 1}})
	require.NoError(b.T, err)
}

func TestCreateAndGet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	created := b.call("POST", "/api/orders", goodOrder)
	require.Equal(t, http.StatusCreated, created.status)
	require.Equal(t, "application/json", created.header.Get("Content-Type"))
	v := created.decode(t)
	require.Equal(t, json.Number("99.90"), v["totalAmount"])
	require.Equal(t, "PENDING", v["status"])
	require.Nil(t, v["attention"])
	require.Equal(t, json.Number("1"), v["version"])
	require.NotContains(t, v, "sagas")
	require.Regexp(t, `Z$`, v["createdAt"])

	got := b.call("GET", created.header.Get("Location"), "")
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, created.text, got.text)
	require.Equal(t, http.StatusOK, b.call("HEAD", created.header.Get("Location"), "").status)
}

func TestPathsAndMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.call("GET", "/api/orders/1", "").problem(t, 404)
	b.call("GET", "/api/nothing", "").problem(t, 404)
	b.call("GET", "/api/orders/1/other", "").problem(t, 404)
	for _, id := range []string{"0", "-1", "x", "+1", "01", "1.0", "99999999999999999999"} {
		require.Contains(t, b.call("GET", "/api/orders/"+id, "").problem(t, 400), "id", id)
	}
	a := b.call("PATCH", "/api/orders", goodOrder)
	a.problem(t, 405)
	require.Equal(t, "GET, HEAD, POST", a.header.Get("Allow"))
	a = b.call("POST", "/api/orders/1", goodOrder)
	a.problem(t, 405)
	require.Equal(t, "GET, HEAD, DELETE", a.header.Get("Allow"))
	a = b.call("GET", "/api/orders/1/cancel", "")
	a.problem(t, 405)
	require.Equal(t, "POST, DELETE", a.header.Get("Allow"))
}

func TestPagesOfOtherSitesCannotChangeAnything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.create()
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://elsewhere.example"}, {"Origin", "null"},
	} {
		b.call("POST", path+"/cancel", "", headers...).problem(t, 403)
		b.call("DELETE", path, "", headers...).problem(t, 403)
		require.Equal(t, 200, b.call("GET", path, "", headers...).status, "reading changes nothing")
	}
	require.Equal(t, "PENDING", b.call("GET", path, "").decode(t)["status"])
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://example.com"}} {
		require.Equal(t, 200, b.call("POST", path+"/cancel", "", headers...).status, headers)
	}
}

func TestTheLifeOfAnOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.create()
	b.call("PUT", path+"/status", `{"status":"SHIPPED"}`).problem(t, 409)
	require.Contains(t, b.call("PUT", path+"/status", `{"status":"CONFIRMED"}`).problem(t, 400), "status")
	require.Contains(t, b.call("PUT", path+"/status", `{}`).problem(t, 400), "status")
	b.call("PUT", "/api/orders/999/status", `{"status":"SHIPPED"}`).problem(t, 404)

	b.settle(path, order.SagaCompleted)
	shipped := b.call("PUT", path+"/status", `{"status":"SHIPPED"}`)
	require.Equal(t, 200, shipped.status, shipped.text)
	require.Equal(t, "SHIPPED", shipped.decode(t)["status"])
	require.Equal(t, shipped.text, b.call("PUT", path+"/status", `{"status":"SHIPPED"}`).text)
	b.call("POST", path+"/cancel", "").problem(t, 409)
	b.call("DELETE", path, "").problem(t, 409)
	require.Equal(t, "DELIVERED", b.call("PUT", path+"/status", `{"status":"DELIVERED"}`).decode(t)["status"])
	require.Equal(t, 204, b.call("DELETE", path, "").status)
	b.call("GET", path, "").problem(t, 404)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.create()
	require.Contains(t, b.call("POST", path+"/cancel", `{"reason":""}`).problem(t, 400), "reason")
	require.Contains(t, b.call("POST", path+"/cancel", `{"why":"x"}`).problem(t, 400), "why")
	b.call("POST", "/api/orders/999/cancel", "").problem(t, 404)
	first := b.call("POST", path+"/cancel", `{"reason":"changed my mind"}`)
	require.Equal(t, 200, first.status, first.text)
	require.Equal(t, "CANCELLING", first.decode(t)["status"])
	again := b.call("DELETE", path+"/cancel", "")
	require.Equal(t, 200, again.status)
	require.Equal(t, first.text, again.text)
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.call("POST", "/api/orders", goodOrder, "Idempotency-Key", "k-1")
	require.Equal(t, 201, first.status)
	require.Empty(t, first.header.Get("Idempotency-Replayed"))
	path := first.header.Get("Location")
	require.Equal(t, 200, b.call("POST", path+"/cancel", "").status)

	again := b.call("POST", "/api/orders", goodOrder, "Idempotency-Key", "k-1")
	require.Equal(t, 201, again.status)
	require.Equal(t, first.text, again.text, "the first answer, not the order of now")
	require.Equal(t, path, again.header.Get("Location"))
	require.Equal(t, "true", again.header.Get("Idempotency-Replayed"))

	b.call("POST", "/api/orders", strings.Replace(goodOrder, "99.90", "99.91", 1), "Idempotency-Key", "k-1").problem(t, 422)
	b.call("POST", path+"/cancel", "", "Idempotency-Key", "k-1").problem(t, 422)
	b.call("POST", "/api/orders", `{}`, "Idempotency-Key", "k-2").problem(t, 400)
	require.Equal(t, 201, b.call("POST", "/api/orders", goodOrder, "Idempotency-Key", "k-2").status)
	for _, key := range []string{"", "a b", "ü", strings.Repeat("k", 256), "a\tb"} {
		require.Contains(t, b.call("POST", "/api/orders", goodOrder, "Idempotency-Key", key).problem(t, 400), "Idempotency-Key")
	}
}

func TestConcurrentCreatesWithOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var (
		group   sync.WaitGroup
		answers [6]answer
	)
	for i := range answers {
		group.Go(func() { answers[i] = b.call("POST", "/api/orders", goodOrder, "Idempotency-Key", "same") })
	}
	group.Wait()
	for _, a := range answers {
		require.Equal(t, 201, a.status, a.text)
		require.Equal(t, answers[0].text, a.text)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var paths []string
	for range 5 {
		paths = append(paths, b.create())
	}
	b.settle(paths[1], order.SagaParked)
	page := b.call("GET", "/api/orders?limit=3&status=PENDING", "")
	first := page.decode(t)
	require.Len(t, first["orders"], 3)
	require.Equal(t, fmt.Sprintf("/api/orders?before=%v&limit=3&status=PENDING", first["nextBefore"]), first["next"])
	require.Equal(t, fmt.Sprintf(`<%v>; rel="next"`, first["next"]), page.header.Get("Link"))
	rest := b.call("GET", fmt.Sprintf("/api/orders?limit=3&before=%v", first["nextBefore"]), "").decode(t)
	require.Len(t, rest["orders"], 2)
	require.Nil(t, rest["nextBefore"])
	require.Nil(t, rest["next"])
	flagged := b.call("GET", "/api/orders?attention=true&status=PENDING&customerId=customer-1", "").decode(t)
	require.Len(t, flagged["orders"], 1)
	require.Equal(t, "parked", flagged["orders"].([]any)[0].(map[string]any)["attention"])
	require.Empty(t, b.call("GET", "/api/orders?customerId=other", "").decode(t)["orders"])

	got := b.call("GET", "/api/orders?limit=0&before=x&status=open&attention=yes&page=2&customerId=", "").problem(t, 400)
	require.Len(t, got, 6)
	require.Contains(t, b.call("GET", "/api/orders?customerid=x", "").problem(t, 400)["customerid"], "did you mean customerId?")
	for _, broken := range []string{"limit=%zz", "limit=1;before=2"} {
		require.Contains(t, b.call("GET", "/api/orders?"+broken, "").problem(t, 400), "query", broken)
	}
	require.Contains(t, b.call("GET", "/api/orders?limit=1&limit=2", "").problem(t, 400), "limit")
}

func TestSagasOfAnOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.create()
	with := func(s httpapi.Sagas) answer {
		api, err := httpapi.New(httpapi.Config{Store: b.store, CurrencyScale: orders.Scale, Sagas: s})
		require.NoError(t, err)
		return call(t, api, "GET", path, "")
	}
	require.Contains(t, with(sagas{value: []map[string]string{{"state": "RUNNING", "note": "a<b"}}}).text, `"sagas":[{"note":"a<b","state":"RUNNING"}]`)
	for _, broken := range []sagas{{err: errors.New("journal down")}, {value: make(chan int)}} {
		a := with(broken)
		require.Equal(t, 200, a.status)
		require.Equal(t, true, a.decode(t)["sagasUnavailable"])
		require.NotContains(t, a.text, "journal down")
	}
}

// failing is a store of which every call fails; the real one cannot be made to
// fail in all these ways at will.
type failing struct {
	httpapi.Store
	err error
}

func (f failing) Create(context.Context, order.New, order.Request) (order.Result, error) {
	return order.Result{}, f.err
}

func TestFailuresThatAreNotTheClients(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    error
		status int
		detail string
	}{
		"down":    {&order.UnavailableError{Err: errors.New("secret-host refused")}, 503, "nothing was changed"},
		"perhaps": {&order.UnavailableError{Maybe: true, Err: errors.New("secret-host cut")}, 503, "may have been stored"},
		"bug":     {errors.New("secret-host: column missing"), 500, "log of the order service"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			api, err := httpapi.New(httpapi.Config{
				Store: failing{err: tt.err}, CurrencyScale: orders.Scale, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			require.NoError(t, err)
			a := call(t, api, "POST", "/api/orders", goodOrder)
			a.problem(t, tt.status)
			require.Contains(t, a.text, tt.detail)
			require.NotContains(t, a.text, "secret-host")
			require.Contains(t, log.String(), "secret-host")
			require.Equal(t, tt.status == 503, a.header.Get("Retry-After") == "1")
		})
	}
}

// recording keeps what reached the store.
type recording struct {
	httpapi.Store
	request order.Request
}

func (s *recording) Create(_ context.Context, _ order.New, r order.Request) (order.Result, error) {
	s.request = r
	return order.Result{Response: r.Respond(order.Order{})}, nil
}

func TestTraceParent(t *testing.T) {
	t.Parallel()
	store := &recording{}
	api, err := httpapi.New(httpapi.Config{Store: store, CurrencyScale: orders.Scale})
	require.NoError(t, err)
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for value, want := range map[string]string{
		good: good,
		"":   "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		good + "-x": "",
		"garbage":   "",
	} {
		a := call(t, api, "POST", "/api/orders", goodOrder, "traceparent", value)
		require.Equal(t, 201, a.status, a.text)
		require.Equal(t, want, store.request.TraceParent, value)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := httpapi.New(httpapi.Config{})
	require.ErrorContains(t, err, "missing Store")
	require.ErrorContains(t, err, "missing CurrencyScale")
}
