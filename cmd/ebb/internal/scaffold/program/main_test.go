package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ebbline/ebb/consumers/handler"
)

// What is sent is taken back with what the reply said.
func TestWhatIsSentIsTakenBack(t *testing.T) {
	items := map[string]string{} // id to key
	mux := http.NewServeMux()
	mux.HandleFunc("POST /items", func(w http.ResponseWriter, r *http.Request) {
		items["i-1"] = r.Header.Get("Idempotency-Key")
		_, _ = w.Write([]byte(`{"id":"i-1"}`))
	})
	mux.HandleFunc("DELETE /items/{id}", func(_ http.ResponseWriter, r *http.Request) { delete(items, r.PathValue("id")) })
	fake := httptest.NewServer(mux)
	defer fake.Close()
	h := destination(fake.URL).Handler

	request, err := h.Prepare(t.Context(), handler.Step{EventType: "OrderCreated", AggregateID: "42", Event: []byte(`{"totalAmount":10.50}`)})
	if err != nil {
		t.Fatal(err)
	}
	request.Key = "k-1:do"
	result, err := h.Send(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if items["i-1"] != "k-1:do" {
		t.Fatalf("the fake has %v", items)
	}
	if _, err := h.Undo(t.Context(), handler.Request{Body: result.Undo, Key: "k-1:undo", Undoing: true}); err != nil {
		t.Fatal(err)
	}
	if len(items) != 0 {
		t.Fatalf("the fake still has %v", items)
	}
}
