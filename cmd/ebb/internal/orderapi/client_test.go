package orderapi

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func client(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	c, err := NewClient(srv.URL+"/", srv.Client())
	require.NoError(t, err)
	return c
}

func TestMoneyKeepsItsDigits(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`99.90`, `"99.90"`, `9007199254740993`, `0.1000`} {
		var m Money
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		out, err := json.Marshal(m)
		require.NoError(t, err)
		require.JSONEq(t, `"`+string(m)+`"`, string(out))
		require.Contains(t, text, string(m))
	}
}

func TestCreateSendsKeyAndBody(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.JSONEq(t, `{"customerId":"c","totalAmount":"1.50","currency":"EUR","shippingType":"domestic"}`, string(body))
		require.Equal(t, []string{"k"}, r.Header["Idempotency-Key"])
		require.Equal(t, "POST /api/orders", r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":7,"totalAmount":1.50,"status":"PENDING","unknown":true}`)
	})
	o, err := c.Create(t.Context(), "k", New{"c", "1.50", "EUR", "domestic"})
	require.NoError(t, err)
	require.Equal(t, Money("1.50"), o.TotalAmount)
	require.EqualValues(t, 7, o.ID)
	require.False(t, o.Settled())
}

func TestListSendsItsFilter(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "attention=true&before=9&customerId=c+1&limit=3&status=PENDING", r.URL.RawQuery)
		_, _ = io.WriteString(w, `{"orders":[{"id":8}],"nextBefore":8}`)
	})
	page, err := c.List(t.Context(), Filter{Status: "PENDING", CustomerID: "c 1", Attention: true, Before: 9, Limit: 3})
	require.NoError(t, err)
	require.Len(t, page.Orders, 1)
	require.EqualValues(t, 8, *page.NextBefore)
}

func TestErrorsNameEveryField(t *testing.T) {
	t.Parallel()
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"status":400,"detail":"invalid","errors":[{"field":"a","detail":"is missing"},{"field":"b","detail":"is wrong"}]}`)
	})
	_, err := c.Cancel(t.Context(), "", 7, "")
	var bad *Error
	require.ErrorAs(t, err, &bad)
	require.Equal(t, 400, bad.Status)
	require.Equal(t, "the order API answered 400: invalid\n  a: is missing\n  b: is wrong", err.Error())
}

func TestAnswersOfSomethingElse(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{200: "<html>", 502: "<html>bad gateway"} {
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		_, err := c.Get(t.Context(), 1)
		require.ErrorContains(t, err, "check the address")
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	var gone *UnreachableError
	cut := client(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := cut.SetStatus(t.Context(), "k", 1, "SHIPPED")
	require.ErrorAs(t, err, &gone)
	require.True(t, gone.Maybe, "it may have been stored")
	_, err = cut.Get(t.Context(), 1)
	require.ErrorAs(t, err, &gone)
	require.False(t, gone.Maybe, "reading changes nothing")

	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	c, err := NewClient("http://"+ln.Addr().String(), &http.Client{})
	require.NoError(t, err)
	_, err = c.Cancel(t.Context(), "k", 1, "why")
	require.ErrorAs(t, err, &gone)
	require.False(t, gone.Maybe, "nothing was sent")
	require.ErrorContains(t, err, "does not answer")
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://", "http://user:secret@host", "http://h/?q=1", "http://h\n"} {
		_, err := NewClient(bad, nil)
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "secret")
	}
}
