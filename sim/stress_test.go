package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Impatient clients repeat under one key through every kind of fault until
// they are answered. Each order must end with exactly one charge, or with one
// charge and its refund.
func TestRepeatsThroughFaultsHaveOneEffect(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) {
		c.Settings = Settings{Rates: map[string]Rate{"*": 2000}, Refusals: map[string]Rate{"*": 0}}
	})
	const chance = 1500
	short := Duration(time.Millisecond)
	b.faults(t,
		Fault{Action: Lose, Probability: chance, Seed: 1},
		Fault{Action: Reset, Probability: chance, Seed: 2},
		Fault{Action: StallBody, Duration: short, Probability: chance, Seed: 3},
		Fault{Action: Hang, At: HangBefore, Duration: short, Probability: chance, Seed: 4},
		Fault{Action: Hang, At: HangDuring, Duration: short, Probability: chance, Seed: 5},
		Fault{Action: Hang, At: HangAfter, Duration: short, Probability: chance, Seed: 6},
		Fault{Action: Unavailable, Probability: chance, Seed: 7},
	)
	insist := func(path, key, order, body string) testReply {
		for {
			r, err := b.try(http.MethodPost, path, key, order, body)
			if err == nil && (r.status < 400 || r.status == 422 || r.status == 404) {
				return r
			}
		}
	}
	const orders, twins = 24, 2
	var wg sync.WaitGroup
	for order := range orders {
		for range twins { // two consumers believe that the order is theirs
			wg.Go(func() {
				id := fmt.Sprint(order)
				r := insist("/api/billing", id+":do", id, billingBody)
				var got chargeReply
				if err := json.Unmarshal([]byte(r.body), &got); err != nil {
					t.Error(err)
				}
				if order%2 == 0 {
					insist("/api/billing/"+got.Transaction.ID+"/refund", id+":undo", id, `{"amount":12345678.90}`)
				}
			})
		}
	}
	wg.Wait()
	require.NoError(t, b.client.ClearFaults(t.Context()))
	found, err := b.client.Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
	require.Len(t, b.effects(t), orders+orders/2)
	sums, err := b.client.Summary(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, sums, orders)
	for _, s := range sums {
		require.Equal(t, s.Charges.Live == 0, s.Money[0].Net == "0.00", "%+v", s)
	}
	require.NoError(t, b.sim.Close())
	again := reopen(t, b.path)
	require.Len(t, again.effects(t), orders+orders/2, "the file tells the same")
}
