package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/producer/httpapi"
)

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
	api, err := httpapi.New(httpapi.Config{Store: &recording{}, CurrencyScale: orders.Scale})
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
	api, err := httpapi.New(httpapi.Config{Store: &recording{}, CurrencyScale: orders.Scale})
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

// FuzzCreate throws bodies at the API: it must answer 201 or a 4xx problem and
// never panic.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{goodOrder, `{"customerId":1,"totalAmount":{},"curency":[],"shippingType":null}`, goodOrder + "x", `{"a~/b":1}`, `{}`, `[`, `{"a":1,"a":2}`, `{"totalAmount":"1e5","currency":"EUR"}`, "\xff", `{"customerId":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	api, err := httpapi.New(httpapi.Config{Store: &recording{}, CurrencyScale: orders.Scale})
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
