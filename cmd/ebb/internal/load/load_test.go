package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is an order service in memory: an order has its end when it is first listed.
type shop struct {
	mu     sync.Mutex
	orders []orderapi.Order // by id, the oldest first
	keys   map[string]bool
	refuse func(n int) error // of the n-th create
	stuck  bool              // no order ever ends
}

func (s *shop) Create(_ context.Context, key string, n orderapi.New) (orderapi.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]bool{}
	}
	if s.keys[key] {
		return orderapi.Order{}, errors.New("the key was used before")
	}
	s.keys[key] = true
	if s.refuse != nil {
		if err := s.refuse(len(s.keys)); err != nil {
			return orderapi.Order{}, err
		}
	}
	at := time.Unix(1000, 0)
	o := orderapi.Order{ID: int64(len(s.orders) + 1), CustomerID: n.CustomerID, ShippingType: n.ShippingType, Status: "PENDING", CreatedAt: at, UpdatedAt: at}
	s.orders = append(s.orders, o)
	return o, nil
}

func (s *shop) Cancel(_ context.Context, _ string, id int64, _ string) (orderapi.Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[id-1].Status = "CANCELLED"
	return s.orders[id-1], nil
}

func (s *shop) List(_ context.Context, f orderapi.Filter) (orderapi.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var p orderapi.Page
	for i := len(s.orders) - 1; i >= 0 && len(p.Orders) < min(f.Limit, 7); i-- {
		o := &s.orders[i]
		if f.Before > 0 && o.ID >= f.Before {
			continue
		}
		if o.Status == "PENDING" && !s.stuck {
			o.Status = "CONFIRMED"
			o.UpdatedAt = o.CreatedAt.Add(time.Duration(o.ID) * time.Millisecond)
		}
		p.Orders = append(p.Orders, *o)
	}
	return p, nil
}

func config(s *shop) Config {
	return Config{Orders: s, Run: "r", Count: 40, Workers: 4, Settle: time.Minute, Look: time.Millisecond, RefuseAt: []string{"billing", "shipping"}}
}

func TestEveryOrderHasItsEnd(t *testing.T) {
	t.Parallel()
	s := &shop{}
	cfg := config(s)
	cfg.Mix = Mix{Domestic: 5, International: 2, Refused: 2, Cancelled: 1}
	r, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"CONFIRMED": 36, "CANCELLED": 4}, r.Ends)
	require.Equal(t, 40, r.Sent)
	require.Equal(t, 40, r.Accepted)
	require.Equal(t, 40, r.Accept.Count)
	require.Equal(t, 36, r.End.Count, "how long a cancelled order took says nothing")
	require.True(t, r.Good())
	count := func(match func(orderapi.Order) bool) (n int) {
		for _, o := range s.orders {
			if match(o) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 8, count(func(o orderapi.Order) bool { return o.ShippingType == "international" }))
	require.Equal(t, 8, count(func(o orderapi.Order) bool {
		return slices.Contains([]string{"billing", "shipping"}, refusing(o.CustomerID))
	}))
}

func refusing(customer string) string {
	for _, d := range []string{"billing", "shipping"} {
		if mark := "-refuse-" + d; len(customer) > len(mark) && customer[len(customer)-len(mark):] == mark {
			return d
		}
	}
	return ""
}

func TestFailuresAreCountedByReason(t *testing.T) {
	t.Parallel()
	s := &shop{refuse: func(n int) error {
		switch n % 4 {
		case 1:
			return &orderapi.Error{Status: 503, Detail: "different each time"}
		case 2:
			return &orderapi.UnreachableError{URL: "http://x", Err: errors.New("cut")}
		}
		return nil
	}}
	r, err := Run(t.Context(), config(s))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"answered 503": 10, "no answer": 10}, r.Failed)
	require.Equal(t, 20, r.Accepted)
	require.False(t, r.Good())
}

func TestOrdersWithoutAnEndAreOpen(t *testing.T) {
	t.Parallel()
	cfg := config(&shop{stuck: true})
	cfg.Settle = time.Millisecond
	r, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, map[string]int{Open: 40}, r.Ends)
	require.False(t, r.Good())
}

func TestAnEndedContextEndsTheLoad(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &shop{stuck: true}
	s.refuse = func(n int) error {
		if n == 5 {
			cancel()
		}
		return nil
	}
	cfg := config(s)
	cfg.Count, cfg.For = 0, time.Hour
	r, err := Run(ctx, cfg)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.Sent, 5)
	require.Equal(t, r.Accepted, r.Ends[Open])
}

func TestARateSpreadsOrdersEvenly(t *testing.T) {
	t.Parallel()
	cfg := config(&shop{})
	cfg.Rate, cfg.Count, cfg.For = 1000, 0, 30*time.Millisecond
	r, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, 30, r.Sent, "orders are due at 0, 1, 2 … 29 ms, however long it takes to send them")
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Rate: -1, Workers: -1, Mix: Mix{Refused: 1}})
	for _, want := range []string{"Orders is nil", "Run is empty", "Rate is not", "Count and For", "Workers is not", "RefuseAt is empty"} {
		require.ErrorContains(t, err, want)
	}
}

func TestMix(t *testing.T) {
	t.Parallel()
	m, err := ParseMix("domestic=2, refused=1")
	require.NoError(t, err)
	p := picker{mix: m}
	var got []Kind
	for range 6 {
		got = append(got, p.next())
	}
	require.Equal(t, []Kind{Domestic, Refused, Domestic, Domestic, Refused, Domestic}, got)
	for _, bad := range []string{"", "domestic", "domestic=", "domestic=-1", "foo=1", "domestic=0", "domestic=1,domestic=2", "domestic=1.5"} {
		_, err := ParseMix(bad)
		require.Error(t, err, bad)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	require.Zero(t, spreadOf(nil))
	var times []time.Duration
	for n := range 200 {
		times = append(times, time.Duration(200-n)*time.Millisecond)
	}
	require.Equal(t, Spread{200, 100_000, 198_000, 200_000}, spreadOf(times))
	require.Equal(t, Spread{1, 1000, 1000, 1000}, spreadOf(times[199:]))
}
