package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// BenchmarkEffects measures durable effects per second with many callers, as
// handler calls without a network.
func BenchmarkEffects(b *testing.B) {
	for _, sync := range []bool{true, false} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			s, err := Open(Config{LedgerPath: filepath.Join(b.TempDir(), "ledger"), NoSync: !sync, Settings: Quiet()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			h := s.Handler()
			var n atomic.Int64
			b.SetParallelism(64)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					id := fmt.Sprint(n.Add(1))
					r := httptest.NewRequest(http.MethodPost, "/api/billing", bytes.NewReader([]byte(billingBody)))
					r.Header.Set("Idempotency-Key", id)
					r.Header.Set("X-Aggregate-Id", id)
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code != http.StatusOK {
						b.Error(w.Body.String())
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "effects/s")
		})
	}
}
