package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Stats is what the server has seen since the last reset.
type Stats struct {
	Calls   int64 `json:"calls"`   // requests answered
	Effects int64 `json:"effects"` // first requests of a key that were not refused, undoing ones included
	Refused int64 `json:"refused"` // first requests of a key that were refused
	Undone  int64 `json:"undone"`  // effects that undo others
	Repeats int64 `json:"repeats"` // requests of a key that was seen before
	Keyless int64 `json:"keyless"` // requests without a key
}

// Server answers for all destinations. It is safe for concurrent use.
type Server struct {
	latency time.Duration
	keys    [64]shard
	counts  counters
}

type counters struct{ calls, effects, refused, undone, repeats, keyless atomic.Int64 }

type shard struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// New makes a server that waits the latency before each answer.
func New(latency time.Duration) *Server {
	s := &Server{latency: latency}
	s.reset()
	return s
}

// Serve answers on the listener until ctx ends.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(ln); ctx.Err() == nil {
		return fmt.Errorf("the API server ended: %w", err)
	}
	return nil
}

func (s *Server) reset() {
	for i := range s.keys {
		k := &s.keys[i]
		k.mu.Lock()
		k.seen = map[string]struct{}{}
		k.mu.Unlock()
	}
	c := &s.counts
	for _, n := range []*atomic.Int64{&c.calls, &c.effects, &c.refused, &c.undone, &c.repeats, &c.keyless} {
		n.Store(0)
	}
}

func (s *Server) stats() Stats {
	c := &s.counts
	return Stats{
		Calls: c.calls.Load(), Effects: c.effects.Load(), Refused: c.refused.Load(), Undone: c.undone.Load(),
		Repeats: c.repeats.Load(), Keyless: c.keyless.Load(),
	}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stats":
		_ = json.NewEncoder(w).Encode(s.stats())
		return
	case "/reset":
		s.reset()
		return
	}
	arrived := time.Now()
	body := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(body)
	body.Reset()
	if _, err := io.Copy(body, r.Body); err != nil {
		return // the caller went away
	}
	o, known := operationOf(r.Method, r.URL.Path)
	if !known {
		http.NotFound(w, r)
		return
	}
	refused := !o.undoes && bytes.Contains(body.Bytes(), []byte("refuse-"+o.destination+`"`))
	key := r.Header.Get("Idempotency-Key")
	s.count(key, o, refused)
	if !wait(r.Context(), s.latency-time.Since(arrived)) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if refused {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"error":"refused","message":"the order is refused here"}`)
		return
	}
	_, _ = io.WriteString(w, o.reply(subject(key)))
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Server) count(key string, o operation, refused bool) {
	c := &s.counts
	c.calls.Add(1)
	if key == "" {
		c.keyless.Add(1)
		return
	}
	if !s.first(key) {
		c.repeats.Add(1)
		return
	}
	if refused {
		c.refused.Add(1)
		return
	}
	c.effects.Add(1)
	if o.undoes {
		c.undone.Add(1)
	}
}

// first tells whether the key was not seen before.
func (s *Server) first(key string) bool {
	h := uint32(2166136261)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * 16777619
	}
	k := &s.keys[h%uint32(len(s.keys))]
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, seen := k.seen[key]; seen {
		return false
	}
	k.seen[key] = struct{}{}
	return true
}

// subject is the part of a key that names the saga.
func subject(key string) string {
	id, _, _ := strings.Cut(key, ":")
	return id
}

// operation is one route.
type operation struct {
	destination string // as in "refuse-<destination>"
	undoes      bool
	reply       func(subject string) string
}

var operations = map[string]operation{
	"POST /api/inventory/reserve": {destination: "inventory", reply: func(id string) string {
		return `{"reservationId":"RES-` + id + `","status":"reserved","warehouse":"central","quantity":1}`
	}},
	"POST /api/fraud/check": {destination: "fraudCheck", reply: func(id string) string {
		return `{"checkId":"FRC-` + id + `","riskScore":12,"decision":"approve"}`
	}},
	"POST /api/domestic-shipping": {destination: "shipping", reply: func(id string) string {
		return `{"shipmentId":"SHP-` + id + `","trackingNumber":"TRK-` + id + `","carrier":"post","status":"booked"}`
	}},
	"POST /api/billing": {destination: "billing", reply: func(id string) string {
		return `{"status":"success","message":"payment processed","transaction":{"id":"TXN-` + id + `","status":"completed"}}`
	}},
	"POST /api/notes": {destination: "note", reply: func(id string) string {
		return `{"noteId":"NOT-` + id + `","status":"noted"}`
	}},
}

var undone = operation{undoes: true, reply: func(id string) string {
	return `{"status":"undone","reference":"UND-` + id + `"}`
}}

func operationOf(method, path string) (operation, bool) {
	if o, ok := operations[method+" "+path]; ok {
		return o, true
	}
	switch {
	case strings.HasSuffix(path, "/release") && method == http.MethodDelete,
		strings.HasSuffix(path, "/cancel") && method == http.MethodPost,
		strings.HasSuffix(path, "/refund") && method == http.MethodPost:
		return undone, true
	}
	return operation{}, false
}
