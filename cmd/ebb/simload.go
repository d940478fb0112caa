package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/ebbline/ebb/cmd/ebb/internal/load"
	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
	"github.com/ebbline/ebb/sim"
)

type simLoadCmd struct {
	orderPlace
	Rate    int           `help:"Orders per second; 0 as fast as the workers go." default:"50" placeholder:"N"`
	Count   int           `help:"End after so many orders." placeholder:"N"`
	For     time.Duration `help:"End after so long; 10s if neither is given." placeholder:"DURATION"`
	Mix     string        `help:"Shares of the kinds: domestic, international, refused and cancelled." default:"domestic=70,international=20,refused=5,cancelled=5" placeholder:"KIND=SHARE,…"`
	Workers int           `help:"Orders on their way at a time." default:"64"`
	Settle  time.Duration `help:"How long the ends are waited for after the last order." default:"60s"`
}

// Help has examples.
func (simLoadCmd) Help() string {
	return `Latencies count from when an order was due, so that a slow service cannot look fast by slowing the sender down. Exits with 1 if an
order was not taken, or has not come to an end.

Examples:

  ebb sim load --rate 200 --for 30s
  ebb sim load --rate 0 --count 5000 --mix domestic=1
  ebb sim load --count 100 --mix domestic=50,refused=25,cancelled=25 --json | jq .ends`
}

func (c *simLoadCmd) Run(e *env) error {
	mix, err := load.ParseMix(c.Mix)
	if err != nil {
		return &usageError{fmt.Errorf("--mix: %w", err)}
	}
	if c.Count == 0 && c.For == 0 {
		c.For = 10 * time.Second
	}
	transport := &http.Transport{MaxIdleConnsPerHost: max(c.Workers, 1) + 1}
	defer transport.CloseIdleConnections()
	api, err := e.ordersBy(c.orderPlace, &http.Client{Timeout: time.Minute, Transport: transport})
	if err != nil {
		return err
	}
	if _, err := api.List(e.ctx, orderapi.Filter{Limit: 1}); err != nil {
		return err
	}
	report, err := load.Run(e.ctx, load.Config{
		Orders: api, Run: uuid.NewString()[:8], Rate: c.Rate, Count: c.Count, For: c.For, Mix: mix, Workers: c.Workers, Settle: c.Settle,
		RefuseAt: []string{sim.Inventory, sim.FraudCheck, sim.Shipping, sim.Billing},
	})
	if err != nil {
		return &usageError{err}
	}
	if err := one(e, report, printLoad); err != nil {
		return err
	}
	if !report.Good() {
		return errors.New("not every order was taken and came to an end; see `ebb order list` and `ebb saga list --attention`")
	}
	return nil
}

func printLoad(w io.Writer, r load.Report) {
	fmt.Fprintf(w, "sent %d orders in %s, accepted %d, %d.%d per second\n", r.Sent, round(micros(r.Took)), r.Accepted, r.PerSecond/1000, r.PerSecond%1000/100)
	spread := func(name string, s load.Spread) []string {
		return []string{name, fmt.Sprint(s.Count), fine(micros(s.P50)), fine(micros(s.P99)), fine(micros(s.Max))}
	}
	table(w, "latencies", []string{"LATENCY", "COUNT", "P50", "P99", "MAX"}, [][]string{spread("accepted", r.Accept), spread("ended", r.End)})
	var ends []string
	for _, name := range slices.Sorted(maps.Keys(r.Ends)) {
		ends = append(ends, fmt.Sprintf("%s %d", name, r.Ends[name]))
	}
	fmt.Fprintf(w, "ends: %s\n", dash(strings.Join(ends, ", ")))
	for _, why := range slices.Sorted(maps.Keys(r.Failed)) {
		fmt.Fprintf(w, "failed: %d × %s\n", r.Failed[why], plain(why))
	}
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// fine is a time as people read it, to a tenth of a millisecond.
func fine(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
