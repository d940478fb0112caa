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
	"github.com/ebbline/ebb/producer/httpapi"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

func TestMain(m *testing.M) { testkit.Main(m) }

type encoder struct{}

func (encoder) EncodeCreated(_ context.Context, v order.Created) ([]byte, error) {
	return json.Marshal(v)
}

func (encoder) EncodeStatusUpdated(_ context.Context, v order.StatusUpdated) ([]byte, error) {
	return json.Marshal(v)
}

func (encoder) EncodeCancelled(_ context.Context, v order.Cancelled) ([]byte, error) {
	return json.Marshal(v)
}

func scale(code string) (int, bool) {
	n, ok := map[string]int{"EUR": 2, "JPY": 0, "KWD": 3}[code]
	return n, ok
}

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
	store, err := postgres.New(postgres.Config{Pool: testkit.Pool(t, dsn), Encoder: encoder{}})
	require.NoError(t, err)
	api, err := httpapi.New(httpapi.Config{Store: store, CurrencyScale: scale})
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

func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct{ sent, currency, want string }{
		{`99.9`, "EUR", "99.90"},
		{`"99.90"`, "EUR", "99.90"},
		{`900719925474099.31`, "EUR", "900719925474099.31"},
		{`1e3`, "JPY", "1000"},
		{`"0.001"`, "KWD", "0.001"},
		{`12.000`, "JPY", "12"},
	} {
		a := b.call("POST", "/api/orders", fmt.Sprintf(`{"customerId":"c","totalAmount":%s,"currency":%q,"shippingType":"international"}`, tt.sent, tt.currency))
		require.Equal(t, http.StatusCreated, a.status, a.text)
		require.Contains(t, a.text, `"totalAmount":`+tt.want+`,`)
	}
}

func TestEveryBadFieldIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	order := func(customer, amount, currency, shipping string) string {
		return fmt.Sprintf(`{"customerId":%s,"totalAmount":%s,"currency":%s,"shippingType":%s}`, customer, amount, currency, shipping)
	}
	tests := []struct {
		name, body string
		fields     map[string]string
	}{
		{"nothing", `{}`, map[string]string{"customerId": "missing", "totalAmount": "missing", "currency": "missing", "shippingType": "missing"}},
		{"wrong types", order("1", "true", "null", "[]"), map[string]string{
			"customerId": "must be a string, not a number", "totalAmount": "or a string of its digits, not a truth value",
			"currency": "must be a string, not null", "shippingType": "must be a string, not a list"}},
		{"an object", order("{}", `{"value":1}`, `"EUR"`, `"domestic"`), map[string]string{"customerId": "not an object", "totalAmount": "not an object"}},
		{"too precise", order(`"c"`, "99.999", `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "3 digits behind the point, 2 are allowed"}},
		{"too precise for yen", order(`"c"`, `"0.5"`, `"JPY"`, `"domestic"`), map[string]string{"totalAmount": "0 are allowed"}},
		{"too precise for dinar", order(`"c"`, "1.0001", `"KWD"`, `"domestic"`), map[string]string{"totalAmount": "4 digits behind the point, 3 are allowed"}},
		{"too precise by exponent", order(`"c"`, "1e-3", `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "3 digits behind the point"}},
		{"no digits", order(`"c"`, `""`, `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "not a decimal number"}},
		{"a space", order(`"c"`, `" 1"`, `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "not a decimal number"}},
		{"a comma", order(`"c"`, `"1,50"`, `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "not a decimal number"}},
		{"not a number", order(`"c"`, `"NaN"`, `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "not a decimal number"}},
		{"zero", order(`"c"`, "0.00", `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "above 0"}},
		{"negative", order(`"c"`, "-1", `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "negative"}},
		{"too large", order(`"c"`, "1e15", `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "16 digits before"}},
		{"huge exponent", order(`"c"`, "1e999999", `"EUR"`, `"domestic"`), map[string]string{"totalAmount": "exponent"}},
		{"unknown currency", order(`"c"`, "1", `"ZZZ"`, `"domestic"`), map[string]string{"currency": "ISO 4217"}},
		{"shipping", order(`"c"`, "1", `"EUR"`, `"express"`), map[string]string{"shippingType": "international"}},
		{"empty customer", order(`""`, "1", `"EUR"`, `"domestic"`), map[string]string{"customerId": "empty"}},
		{"long customer", order(`"`+strings.Repeat("x", 256)+`"`, "1", `"EUR"`, `"domestic"`), map[string]string{"customerId": "256 characters"}},
		{"control character", order(`"a\u0000"`, "1", `"EUR"`, `"domestic"`), map[string]string{"customerId": "printable"}},
		{"half a surrogate", order(`"a\ud800"`, "1", `"EUR"`, `"domestic"`), map[string]string{"customerId": "Unicode"}},
		{"unknown field", strings.Replace(goodOrder, "{", `{"discount":1,`, 1), map[string]string{"discount": "not a known field"}},
		{"other case", strings.Replace(goodOrder, "customerId", "CustomerID", 1), map[string]string{"customerId": "missing", "CustomerID": "did you mean customerId?"}},
		{"misspelt", strings.Replace(goodOrder, "totalAmount", "total_amout", 1), map[string]string{"totalAmount": "missing", "total_amout": "did you mean totalAmount?"}},
		{"all at once", `{"customerId":"","totalAmount":0,"currency":"eur","shippingtype":"x","Currency":"EUR"}`, map[string]string{
			"customerId": "empty", "totalAmount": "above 0", "currency": "ISO 4217", "shippingType": "missing",
			"shippingtype": "did you mean shippingType?", "Currency": "did you mean currency?"}},
		{"repeated", strings.Replace(goodOrder, "{", `{"currency":"JPY",`, 1), map[string]string{"currency": "more than once"}},
	}
	for _, tt := range tests {
		got := b.call("POST", "/api/orders", tt.body).problem(t, http.StatusBadRequest)
		require.Len(t, got, len(tt.fields), "%s: %v", tt.name, got)
		for field, detail := range tt.fields {
			require.Contains(t, got[field], detail, tt.name)
		}
	}
	page := b.call("GET", "/api/orders", "").decode(t)
	require.Empty(t, page["orders"])
}

func TestBodiesThatAreNoOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"array":         {`[]`, 400},
		"text":          {`"x"`, 400},
		"null":          {`null`, 400},
		"cut":           {`{"customerId":"c"`, 400},
		"broken":        {`{"customerId":}`, 400},
		"two":           {goodOrder + goodOrder, 400},
		"invalid UTF-8": {"{\"customerId\":\"\xff\"}", 400},
		"too large":     {`{"customerId":"` + strings.Repeat("x", 10<<20) + `"}`, 413},
	} {
		require.Empty(t, b.call("POST", "/api/orders", tt.body).problem(t, tt.status), name)
	}
	for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", ";"} {
		b.call("POST", "/api/orders", goodOrder, "Content-Type", contentType).problem(t, 415)
	}
	b.call("POST", "/api/orders", goodOrder, "Content-Encoding", "gzip").problem(t, 415)
	require.Equal(t, 201, b.call("POST", "/api/orders", goodOrder, "Content-Type", "Application/JSON; charset=UTF-8").status)
	padded := goodOrder + strings.Repeat(" ", 10<<20-len(goodOrder))
	require.Equal(t, 201, b.call("POST", "/api/orders", padded).status, "10 MiB are allowed")
	b.call("POST", "/api/orders", padded+" ").problem(t, 413)
}

// TestABodyOfManyFaultsIsAnsweredShortly would take minutes if naming faults were quadratic in their number.
func TestABodyOfManyFaultsIsAnsweredShortly(t *testing.T) {
	t.Parallel()
	api, err := httpapi.New(httpapi.Config{Store: &recording{}, CurrencyScale: scale})
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString(strings.TrimSuffix(goodOrder, "}"))
	for i := range 300_000 {
		fmt.Fprintf(&text, `,"f%d":1`, i)
	}
	text.WriteString("}")
	a := call(t, api, "POST", "/api/orders", text.String())
	require.Len(t, a.problem(t, 400), 50)
	require.Contains(t, a.decode(t)["detail"], "300000 fields are invalid; the first 50 are listed")
	require.Less(t, len(a.text), 20_000)

	long := strings.Repeat("n", 5<<20)
	require.Less(t, len(call(t, api, "POST", "/api/orders", `{"`+long+`":1}`).text), 2_000)
	call(t, api, "POST", "/api/orders", `{"customerId":`+strings.Repeat("[", 1<<20)+`}`).problem(t, 400)
}

func TestErrorsPointIntoTheBody(t *testing.T) {
	t.Parallel()
	api, err := httpapi.New(httpapi.Config{Store: &recording{}, CurrencyScale: scale})
	require.NoError(t, err)
	pointers := func(a answer) map[string]any {
		out := map[string]any{}
		for _, e := range a.decode(t)["errors"].([]any) {
			out[e.(map[string]any)["field"].(string)] = e.(map[string]any)["pointer"]
		}
		return out
	}
	got := pointers(call(t, api, "POST", "/api/orders", strings.Replace(goodOrder, "{", `{"a/b~c d":1,"":2,`, 1)))
	require.Equal(t, map[string]any{"a/b~c d": "#/a~1b~0c%20d", "": "#/"}, got)
	long := strings.Repeat("x", 61)
	got = pointers(call(t, api, "POST", "/api/orders", strings.Replace(goodOrder, "{", `{"`+long+`":1,`, 1)))
	require.Equal(t, map[string]any{long[:60] + "…": nil}, got, "a cut name would point to nothing")
	require.Equal(t, map[string]any{"limit": nil}, pointers(call(t, api, "GET", "/api/orders?limit=x", "")), "not in the body")
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
		api, err := httpapi.New(httpapi.Config{Store: b.store, CurrencyScale: scale, Sagas: s})
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
				Store: failing{err: tt.err}, CurrencyScale: scale, Logger: slog.New(slog.NewTextHandler(&log, nil)),
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
	api, err := httpapi.New(httpapi.Config{Store: store, CurrencyScale: scale})
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

// FuzzCreate throws bodies at the API: it must answer 201 or a 4xx problem and
// never panic.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{goodOrder, `{"customerId":1,"totalAmount":{},"curency":[],"shippingType":null}`, goodOrder + "x", `{"a~/b":1}`, `{}`, `[`, `{"a":1,"a":2}`, `{"totalAmount":"1e5","currency":"EUR"}`, "\xff", `{"customerId":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	api, err := httpapi.New(httpapi.Config{Store: &recording{}, CurrencyScale: scale})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest("POST", "/api/orders", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code == http.StatusCreated {
			return
		}
		require.Contains(t, []int{400, 413, 415}, w.Code)
		var p struct {
			Type, Title, Detail, Instance string
			Errors                        []struct{ Field, Detail string }
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
		require.NotEmpty(t, p.Type)
		require.NotEmpty(t, p.Title)
		require.NotEmpty(t, p.Detail)
		require.NotEmpty(t, p.Instance)
		require.Equal(t, p.Type == "urn:ebb:problem:invalid", len(p.Errors) > 0)
	})
}
