package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ask(t *testing.T, s *Server, method, path, key, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestRepliesHoldWhatUndoRequestsAreMadeOf(t *testing.T) {
	t.Parallel()
	s := New(0)
	for path, field := range map[string]string{
		"/api/inventory/reserve": `"reservationId":"RES-7"`, "/api/fraud/check": `"riskScore":12`,
		"/api/domestic-shipping": `"shipmentId":"SHP-7"`, "/api/billing": `"transaction":{"id":"TXN-7"`, "/api/notes": `"noteId":"NOT-7"`,
	} {
		status, body := ask(t, s, http.MethodPost, path, "7:x:do", `{"orderId":7}`)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, field, path)
		require.True(t, json.Valid([]byte(body)), path)
	}
	status, _ := ask(t, s, http.MethodPost, "/api/other", "7:x:do", "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestAnOrderIsRefusedWhereItSaysSo(t *testing.T) {
	t.Parallel()
	s := New(0)
	body := `{"orderId":10,"customerId":"customer-10-refuse-billing"}`
	status, _ := ask(t, s, http.MethodPost, "/api/inventory/reserve", "10:inventory:do", body)
	require.Equal(t, http.StatusOK, status)
	status, _ = ask(t, s, http.MethodPost, "/api/billing", "10:billing:do", body)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	status, _ = ask(t, s, http.MethodDelete, "/api/inventory/RES-10/release", "10:inventory:undo", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, Stats{Calls: 3, Effects: 2, Refused: 1, Undone: 1}, s.stats())
}

func TestEffectsAreCountedOncePerKey(t *testing.T) {
	t.Parallel()
	s := New(0)
	_, first := ask(t, s, http.MethodPost, "/api/billing", "3:billing:do", "{}")
	_, again := ask(t, s, http.MethodPost, "/api/billing", "3:billing:do", "{}")
	require.Equal(t, first, again)
	ask(t, s, http.MethodPost, "/api/billing", "", "{}")
	require.Equal(t, Stats{Calls: 3, Effects: 1, Repeats: 1, Keyless: 1}, s.stats())
	ask(t, s, http.MethodPost, "/reset", "", "")
	require.Equal(t, Stats{}, s.stats())
}
