package example_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/spec"
)

// TestCrm sends what crm.yaml says to a fake of the destination: the call for an order, and its undo. Make the event and the
// fake's reply those of the real thing.
func TestCrm(t *testing.T) {
	const event = `{"orderId":7,"customerId":"c-1","totalAmount":99.90,"currency":"USD","shippingType":"domestic"}`
	var seen []string
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Idempotency-Key") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		seen = append(seen, r.Method+" "+r.URL.Path+" "+string(body))
		_, _ = io.WriteString(w, `{"id":"d-1"}`)
	}))
	defer fake.Close()

	text, err := os.ReadFile("crm.yaml")
	require.NoError(t, err)
	file, err := spec.Parse("crm.yaml", text)
	require.NoError(t, err)
	sender, err := call.NewSender(call.FromSpec(file, spec.Lookup{Env: func(string) (string, bool) { return fake.URL, true }}))
	require.NoError(t, err)
	defer sender.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in := render.Input{Event: []byte(event), EventID: "e-1", EventType: "OrderCreated", AggregateID: "7", CreatedAt: time.Now()}
	do, err := render.Do(file, in)
	require.NoError(t, err)
	require.Equal(t, render.OutcomeRequest, do.Outcome, do.Reason)
	done := sender.Send(ctx, call.Attempt{Request: do.Request, Key: "e-1:crm:do", Direction: call.Do})
	require.Equal(t, call.Succeeded, done.Class, "%v", done.Err)

	undo, err := render.Undo(file, do.Request.Route, in, do.Request, render.Response{Status: done.Status, Body: done.Body})
	require.NoError(t, err)
	require.Equal(t, render.OutcomeRequest, undo.Outcome, undo.Reason)
	undone := sender.Send(ctx, call.Attempt{Request: undo.Request, Key: "e-1:crm:undo", Direction: call.Undo})
	require.Equal(t, call.Succeeded, undone.Class, "%v", undone.Err)

	require.Equal(t, []string{`POST /crm {"order":7}`, "DELETE /crm/d-1 "}, seen)
}
