package page_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/page"
	"github.com/ebbline/ebb/producer/postgres"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// journal gives the same sagas for every order.
type journal struct {
	sagas []page.Saga
	err   error
}

func (j *journal) OrderSagas(context.Context, string) ([]page.Saga, error) { return j.sagas, j.err }

type bundle struct {
	*testing.T
	page    *page.Page
	store   *postgres.Store
	journal *journal
}

func setup(t *testing.T) bundle {
	t.Helper()
	dsn := testkit.DB(t)
	require.NoError(t, postgres.Migrate(t.Context(), dsn))
	store, err := postgres.New(postgres.Config{Pool: testkit.Pool(t, dsn), Encoder: orders.Encoder{}})
	require.NoError(t, err)
	b := bundle{T: t, store: store, journal: &journal{}}
	b.page, err = page.New(page.Config{Store: store, CurrencyScale: orders.Scale, Journal: b.journal})
	require.NoError(t, err)
	return b
}

type answer struct {
	status int
	header http.Header
	text   string
}

func call(t *testing.T, h http.Handler, method, path string, form url.Values, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), text: w.Body.String()}
	a.safe(t)
	return a
}

var (
	inlineScript = regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:`)
	reference    = regexp.MustCompile(`(?:src|href|action)="([^"]*)"`)
)

// safe checks what holds for every answer: its headers, no inline script or style, nothing from elsewhere.
func (a answer) safe(t *testing.T) {
	t.Helper()
	require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
	require.NotContains(t, a.header.Get("Content-Security-Policy"), "unsafe")
	require.Equal(t, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.Equal(t, "DENY", a.header.Get("X-Frame-Options"))
	require.Equal(t, "same-origin", a.header.Get("Referrer-Policy"))
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") || !strings.HasPrefix(a.text, "<!doctype") {
		return
	}
	require.Equal(t, "no-store", a.header.Get("Cache-Control"))
	require.NotRegexp(t, inlineScript, a.text)
	for _, m := range reference.FindAllStringSubmatch(a.text, -1) {
		require.Regexp(t, `^(/($|[^/])|#)`, m[1], "a reference out of this site")
	}
	require.NotContains(t, a.text, "ZgotmplZ")
}

func (b bundle) get(path string) answer { b.Helper(); return call(b.T, b.page, "GET", path, nil) }

func (b bundle) post(path string, form url.Values) answer {
	b.Helper()
	return call(b.T, b.page, "POST", path, form)
}

func form(values ...string) url.Values {
	v := url.Values{"customerId": {"customer-1"}, "totalAmount": {"99.90"}, "currency": {"EUR"}, "shippingType": {"domestic"}}
	for i := 0; i+1 < len(values); i += 2 {
		v.Set(values[i], values[i+1])
	}
	return v
}

// create makes an order by the form and returns the path of its page.
func (b bundle) create(values ...string) string {
	b.Helper()
	a := b.post("/orders", form(values...))
	require.Equal(b.T, http.StatusSeeOther, a.status, a.text)
	return a.header.Get("Location")
}

func (b bundle) settle(path string, kind order.Trigger) {
	b.Helper()
	var id int64
	_, err := fmt.Sscanf(path, "/orders/%d", &id)
	require.NoError(b.T, err)
	o, err := b.store.Get(b.Context(), id)
	require.NoError(b.T, err)
	_, err = b.store.ApplyOutcomes(b.Context(), []order.Outcome{{OrderID: id, SagaID: o.CreatedEvent, Kind: kind, Revision: o.SagaRevision + 1, Reason: "billing do parked: <why>"}})
	require.NoError(b.T, err)
}

func TestAnOrderByTheForm(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.Contains(t, b.get("/").text, "No orders here yet")
	blank := b.get("/orders/new")
	require.Equal(t, 200, blank.status)
	key := regexp.MustCompile(`name="key" value="(page-[A-Z0-9]+)"`).FindStringSubmatch(blank.text)
	require.Len(t, key, 2)

	path := b.create("key", key[1], "customerId", " customer-7 ", "totalAmount", "0012.5", "currency", "eur")
	require.Equal(t, path, b.create("key", key[1], "customerId", "customer-7", "totalAmount", "12.50"), "sent twice, created once")
	shown := b.get(path)
	require.Equal(t, 200, shown.status)
	require.Contains(t, shown.text, "customer-7")
	require.Contains(t, shown.text, "12.50 EUR")
	require.Contains(t, shown.text, "PENDING")
	require.Contains(t, shown.text, "No consumer has read this order&#39;s event yet")

	again := b.post("/orders", form("key", key[1], "totalAmount", "13"))
	require.Equal(t, 409, again.status)
	require.Contains(t, again.text, "created an order already")
	require.NotContains(t, again.text, key[1], "the form has a new key")
	require.NotEqual(t, path, b.create("key", "no key of ours"))
	list := b.get("/").text
	require.Equal(t, 2, strings.Count(list, `id="order-`))
}

func TestEveryBadFieldIsNamedAndKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.post("/orders", form("customerId", "", "totalAmount", `9.999"><script>`, "currency", "<b>", "shippingType", "express"))
	require.Equal(t, 400, a.status)
	for _, text := range []string{
		"Customer must not be empty", "Amount is not a decimal number", "Currency must be an ISO 4217 code", "Shipping must be",
		`value="9.999&#34;&gt;&lt;script&gt;"`, `value="&lt;B&gt;"`,
	} {
		require.Contains(t, a.text, text)
	}
	for amount, problem := range map[string]string{"0.001": "3 digits behind the point, 2 are allowed", "-1": "negative", "0": "above 0", "": "not a decimal"} {
		require.Contains(t, b.post("/orders", form("totalAmount", amount)).text, problem, amount)
	}
	require.Contains(t, b.post("/orders", form("totalAmount", "1.5", "currency", "JPY")).text, "0 are allowed")
	require.Equal(t, 413, b.post("/orders", form("customerId", strings.Repeat("x", 70_000))).status)
	require.Equal(t, 400, call(t, b.page, "POST", "/orders", nil).status, "no form at all")
	require.Contains(t, b.get("/").text, "No orders here yet")
}

func TestValuesAreEscaped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const evil = `<script>alert(1)</script>"'>`
	path := b.create("customerId", evil)
	b.settle(path, order.SagaParked)
	b.journal.sagas = []page.Saga{{
		ID: evil, Event: evil, State: evil, Attention: evil, Reason: evil,
		Steps: []page.Step{{Destination: evil, State: evil, Key: evil, Waits: evil, Next: evil, Outcome: evil}, {Destination: evil, Undo: true, Reason: evil}},
		Calls: []page.Call{{Destination: evil, Class: evil, Error: evil}},
	}}
	for _, p := range []string{"/", path, path + "/cancel"} {
		a := b.get(p)
		require.Equal(t, 200, a.status)
		require.Contains(t, a.text, "&lt;script&gt;alert(1)")
		require.NotContains(t, a.text, "<script>alert")
	}
}

func TestTheListGoesByPagesAndFilters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var paths []string
	for range 27 {
		paths = append(paths, b.create())
	}
	b.settle(paths[0], order.SagaParked)
	first := b.get("/").text
	require.Contains(t, first, `href="`+paths[26]+`"`)
	require.NotContains(t, first, `href="`+paths[1]+`"`)
	older := regexp.MustCompile(`id="older" href="([^"]+)"`).FindStringSubmatch(first)
	require.Len(t, older, 2)
	second := b.get(older[1]).text
	require.Contains(t, second, `href="`+paths[1]+`"`)
	require.Contains(t, second, `id="newest" href="/"`)
	require.NotContains(t, second, `id="older"`)

	flagged := b.get("/?attention=true").text
	require.Contains(t, flagged, `href="`+paths[0]+`"`)
	require.Contains(t, flagged, "needs attention")
	require.NotContains(t, flagged, `href="`+paths[1]+`"`)
	require.Contains(t, b.get("/?status=SHIPPED").text, "No orders here yet")
	for _, bad := range []string{"/?status=open", "/?before=x", "/?before=-1", "/?status=%zz"} {
		require.Equal(t, 400, b.get(bad).status, bad)
	}
}

func TestOneOrderWithItsSagas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.create()
	b.settle(path, order.SagaParked)
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	b.journal.sagas = []page.Saga{{
		ID: "0195", Event: "OrderCreated", Version: 1, State: "COMPENSATING", Reason: "billing refused: no cover", Attention: "shipping undo parked", CreatedAt: at, UpdatedAt: at,
		Steps: []page.Step{
			{Destination: "inventory", State: "SUCCEEDED", Seq: 3, Attempts: 1, Key: "0195:inventory:do"},
			{Destination: "fraudCheck", State: "SUCCEEDED", Seq: 1, Attempts: 1},
			{Destination: "shipping", State: "SUCCEEDED", Seq: 5, Attempts: 2, Maybe: true},
			{Destination: "billing", State: "REFUSED", Attempts: 1, Reason: "no cover"},
			{Destination: "fraudCheck", Undo: true, State: "SKIPPED"},
			{Destination: "inventory", Undo: true, State: "WAITING", Waits: "until this is undone: shipping (PARKED)"},
			{Destination: "shipping", Undo: true, State: "PARKED", Waits: "for an operator: gone", Next: "ebb saga retry 0195 shipping undo --reason TEXT"},
		},
		Calls: []page.Call{
			{Destination: "inventory", Attempt: 1, Class: "SUCCEEDED", Status: 200, Sent: true, StartedAt: at, Duration: 1500 * time.Microsecond},
			{Destination: "shipping", Attempt: 1, Class: "NOT_SENT", Error: "connection refused", StartedAt: at, Duration: 42 * time.Millisecond},
			{Destination: "shipping", Undo: true, Attempt: 1, Class: "REFUSED", Status: 409, Sent: true, Fenced: true, StartedAt: at},
		},
		OmittedCalls: 12,
	}}
	text := b.get(path).text
	for _, want := range []string{
		"OrderCreated", "COMPENSATING", "billing refused: no cover", "shipping undo parked", "0195:inventory:do", "may have happened", "2 attempts",
		"Waits: until this is undone: shipping (PARKED)", "ebb saga retry 0195 shipping undo --reason TEXT", "12:00:00.005", "1.5 ms", "42 ms",
		"Nothing was sent. connection refused", "Came too late to count.", "12 earlier calls are not shown", "Needs attention", "billing do parked: &lt;why&gt;",
	} {
		require.Contains(t, text, want)
	}
	done, _, _ := strings.Cut(text, "<h3>Undo")
	require.Equal(t, []string{"fraudCheck", "inventory", "shipping", "billing"}, destinations(done), "in the order of completion")
	_, undo, found := strings.Cut(text, "Undo, what was done last comes first")
	require.True(t, found)
	undo, _, _ = strings.Cut(undo, "<h3>Calls")
	require.Equal(t, []string{"shipping", "inventory", "fraudCheck"}, destinations(undo))

	b.journal.err = errors.New("secret-host down")
	text = b.get(path).text
	require.Contains(t, text, "The journal cannot be read now")
	require.NotContains(t, text, "secret-host")
}

func destinations(text string) (names []string) {
	for _, m := range regexp.MustCompile(`class="destination">([^<]+)<`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	path := b.create()
	require.Contains(t, b.get(path).text, `href="`+path+`/cancel"`)
	require.Contains(t, b.get(path+"/cancel").text, "This cannot be taken back")
	require.Contains(t, b.get(path).text, "PENDING", "asking changes nothing")
	long := b.post(path+"/cancel", url.Values{"reason": {strings.Repeat("x", 501)}})
	require.Equal(t, 400, long.status)
	require.Contains(t, long.text, "501 characters")

	a := b.post(path+"/cancel", url.Values{"reason": {""}})
	require.Equal(t, 303, a.status)
	require.Equal(t, path, a.header.Get("Location"))
	shown := b.get(path).text
	require.Contains(t, shown, "CANCELLING")
	require.NotContains(t, shown, path+"/cancel", "cancelled once is enough")
	require.Equal(t, 303, b.post(path+"/cancel", url.Values{}).status, "sent twice")
	b.settle(path, order.SagaCompensated)
	require.Contains(t, b.get(path).text, "CANCELLED")

	rejected := b.create()
	b.settle(rejected, order.SagaCompensated)
	require.Equal(t, 409, b.get(rejected+"/cancel").status)
	refused := b.post(rejected+"/cancel", url.Values{})
	require.Equal(t, 409, refused.status)
	require.Contains(t, refused.text, "REJECTED")
}

func TestPathsMethodsAndOrigins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/nothing", "/orders/1", "/orders/0", "/orders/x", "/orders/01", "/orders/1/cancel", "/assets/none.css", "/favicon.ico"} {
		a := b.get(path)
		require.Equal(t, 404, a.status, path)
		require.Contains(t, a.text, "</html>")
	}
	for path, allow := range map[string]string{"/": "GET", "/orders": "POST", "/orders/1": "GET", "/orders/1/cancel": "GET, POST", "/orders/new": "GET"} {
		a := call(t, b.page, "PUT", path, nil)
		require.Equal(t, 405, a.status, path)
		require.Equal(t, allow, a.header.Get("Allow"), path)
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://elsewhere.example"}, {"Origin", "null"}} {
		a := call(t, b.page, "POST", "/orders", form(), headers...)
		require.Equal(t, 403, a.status)
		require.Contains(t, a.text, "from another site")
	}
	require.Contains(t, b.get("/").text, "No orders here yet")
	require.Equal(t, 303, call(t, b.page, "POST", "/orders", form(), "Sec-Fetch-Site", "same-origin").status)
}

func TestAssetsMayBeKeptForEver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	found := regexp.MustCompile(`"(/assets/[a-z]+\.[0-9a-f]{16}\.(css|js|svg))"`).FindAllStringSubmatch(b.get("/").text, -1)
	types := map[string]string{}
	for _, m := range found {
		a := b.get(m[1])
		require.Equal(t, 200, a.status)
		require.Contains(t, a.header.Get("Cache-Control"), "immutable")
		require.NotRegexp(t, `(?i)https?://[^w]|@import|url\(`, a.text, "nothing from elsewhere")
		types[m[2]] = a.header.Get("Content-Type")
	}
	require.Equal(t, map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}, types)
}

// failing is a store that cannot.
type failing struct {
	page.Store
	err error
}

func (s failing) List(context.Context, order.Filter) ([]order.Order, int64, error) {
	return nil, 0, s.err
}

func (s failing) Create(context.Context, order.New, order.Request) (order.Result, error) {
	return order.Result{}, s.err
}

func TestFailuresOfTheStore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    error
		status int
		text   string
	}{
		"down":    {&order.UnavailableError{Err: errors.New("secret-host refused")}, 503, "nothing was changed"},
		"perhaps": {&order.UnavailableError{Maybe: true, Err: errors.New("secret-host cut")}, 503, "may have been stored"},
		"bug":     {errors.New("secret-host: column missing"), 500, "log of the order service"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			p, err := page.New(page.Config{Store: failing{err: tt.err}, CurrencyScale: orders.Scale, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			sent := call(t, p, "POST", "/orders", form("key", "page-KEPT"))
			require.Equal(t, tt.status == 503, strings.Contains(sent.text, `value="page-KEPT"`), "the form can be sent again under its key")
			for _, a := range []answer{call(t, p, "GET", "/", nil), sent} {
				require.Equal(t, tt.status, a.status)
				require.Contains(t, a.text, tt.text)
				require.NotContains(t, a.text, "secret-host")
			}
			require.Contains(t, log.String(), "secret-host")
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := page.New(page.Config{})
	require.ErrorContains(t, err, "missing Store")
	require.ErrorContains(t, err, "missing CurrencyScale")
	p, err := page.New(page.Config{Store: failing{}, CurrencyScale: orders.Scale})
	require.NoError(t, err)
	require.Equal(t, 200, call(t, p, "GET", "/", nil).status)
}

// FuzzCreate throws forms at the page: it redirects or names what is wrong, and never shows markup that was typed.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{"customerId=c&totalAmount=1&currency=EUR&shippingType=domestic", "customerId=%00&totalAmount=%3Cscript%3E", "%zz", "a;b", "key=page-%ff"} {
		f.Add(seed)
	}
	p, err := page.New(page.Config{Store: failing{err: order.ErrKeyReused}, CurrencyScale: orders.Scale})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		require.Contains(t, []int{400, 409, 413}, w.Code)
		require.NotContains(t, strings.ToLower(w.Body.String()), "<script", "pages with a form have no script")
	})
}
