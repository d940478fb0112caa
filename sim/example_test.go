package sim_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebbline/ebb/sim"
)

// A charge whose reply is lost is repeated under its key: the card is charged
// once, and the oracle has nothing to complain about.
func Example() {
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s, err := sim.Open(sim.Config{
		LedgerPath: filepath.Join(dir, "ledger"),
		Settings:   sim.Quiet(),
		Faults:     []sim.Fault{{Destination: sim.Billing, Attempt: 1, Action: sim.Lose}},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = s.Close() }()
	server := httptest.NewServer(s.Handler())
	defer server.Close()

	charge := func() {
		req, _ := http.NewRequest(http.MethodPost, server.URL+"/api/billing", strings.NewReader(`{"amount":10.50,"currency":"USD"}`))
		req.Header["Idempotency-key"] = []string{"e-1:billing:do"} // not canonical: net/http must not repeat it by itself
		req.Header.Set("X-Aggregate-Id", "7")
		resp, err := server.Client().Do(req)
		if err != nil {
			fmt.Println("no reply")
			return
		}
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, "replayed:", resp.Header.Get("Idempotent-Replayed"))
	}
	charge()
	charge()

	effects, err := sim.NewClient(server.URL, server.Client()).Effects(context.Background(), sim.Filter{Aggregate: "7"})
	if err != nil {
		panic(err)
	}
	for _, e := range effects {
		fmt.Println(e.Kind, e.Thing, e.Amount, e.Currency)
	}
	fmt.Println("violations:", len(sim.Check(effects)))
	// Output:
	// no reply
	// 200 replayed: true
	// charge TXN-7-1 10.50 USD
	// violations: 0
}
