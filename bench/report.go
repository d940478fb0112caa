package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ebbline/ebb/bench/probe"
)

// report is everything that a run found out.
type report struct {
	At         time.Time     `json:"at"`
	Quick      bool          `json:"quick"` // then nothing below means anything
	Machine    probe.Machine `json:"machine"`
	PostgreSQL string        `json:"postgresql"`
	Settings   settings      `json:"settings"`
	Orders     *comparison   `json:"orders,omitempty"`
	HalfLoad   *halfLoad     `json:"halfLoad,omitempty"`
	One        *comparison   `json:"onePartition,omitempty"`
	Twelve     *comparison   `json:"twelvePartitions,omitempty"`
	Profile    *profiled     `json:"profile,omitempty"`
	Took       float64       `json:"seconds"`
}

type settings struct {
	Rounds    int     `json:"rounds"`
	Seconds   float64 `json:"windowSeconds"`
	InFlight  int     `json:"inFlight"`
	Clients   int     `json:"clients"`
	Workers   int     `json:"workers"`
	LatencyMs float64 `json:"apiLatencyMs"`
}

func settingsOf(f flags) settings {
	return settings{f.Rounds, f.Seconds, f.InFlight, f.Clients, f.Workers, float64(f.Latency) / float64(time.Millisecond)}
}

// comparison is Ebb and a peer in alternating rounds.
type comparison struct {
	Name string `json:"name"`
	Ebb  side   `json:"ebb"`
	Peer side   `json:"peer"`
}

type side struct {
	Name    string   `json:"name"`
	Windows []window `json:"windows"`
}

// rate is the median of the rounds, per second.
func (s side) rate() float64 { return s.median(func(w window) float64 { return w.PerSecond }) }

func (s side) median(of func(window) float64) float64 {
	values := make([]float64, len(s.Windows))
	for i, w := range s.Windows {
		values[i] = of(w)
	}
	return probe.Median(values)
}

// ratio is the median rate of Ebb by that of the peer.
func (c comparison) ratio() float64 {
	if peer := c.Peer.rate(); peer > 0 {
		return c.Ebb.rate() / peer
	}
	return 0
}

// ratios are those of the single rounds: how far they lie apart is how far to trust the ratio.
func (c comparison) ratios() []float64 {
	var out []float64
	for i, w := range c.Peer.Windows {
		if i < len(c.Ebb.Windows) && w.PerSecond > 0 {
			out = append(out, c.Ebb.Windows[i].PerSecond/w.PerSecond)
		}
	}
	return out
}

// MarshalJSON adds what follows from the windows.
func (c comparison) MarshalJSON() ([]byte, error) {
	type plain comparison
	return json.Marshal(struct {
		plain
		Ratio  float64   `json:"ratio"`
		Ratios []float64 `json:"ratioOfRounds"`
	}{plain(c), c.ratio(), c.ratios()})
}

func (r *report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// print writes the report as text.
func (r *report) print(out io.Writer) error {
	var b strings.Builder
	m := r.Machine
	if r.Quick {
		b.WriteString("A quick run: it shows that everything works, and measures nothing.\n\n")
	}
	fmt.Fprintf(&b, "%s, %d cores, %.0f GiB, %s, %s; PostgreSQL %s; 8 KiB write and fsync %.2f ms\n",
		m.CPU, m.Cores, m.MemoryGiB, m.OS, m.Go, r.PostgreSQL, m.Fsync)
	s := r.Settings
	fmt.Fprintf(&b, "rounds %d, window %.1f s, API %.0f ms; Ebb: %d open, %d clients; plain loop: %d workers\n", s.Rounds, s.Seconds, s.LatencyMs, s.InFlight, s.Clients, s.Workers)
	for _, c := range []*comparison{r.Orders, r.One, r.Twelve} {
		if c != nil {
			c.print(&b)
		}
	}
	if r.HalfLoad != nil {
		r.HalfLoad.print(&b)
	}
	if r.Profile != nil {
		r.Profile.print(&b)
	}
	fmt.Fprintf(&b, "\nEvery run's audit rows agree with the calls that the API has seen. Took %.0f s.\n", r.Took)
	_, err := io.WriteString(out, b.String())
	return err
}

func (c *comparison) print(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", c.Name)
	tableHead(b)
	for _, s := range []side{c.Ebb, c.Peer} {
		tableRow(b, s)
	}
	fmt.Fprintf(b, "  ratio %.2f; of the single rounds", c.ratio())
	for _, v := range c.ratios() {
		fmt.Fprintf(b, " %.2f", v)
	}
	b.WriteString("\n")
}

func tableHead(b *strings.Builder) {
	fmt.Fprintf(b, "  %-56s %8s | CPU seconds per 1,000: %10s %6s %12s %6s %6s | %12s | %14s\n",
		"", "per s", "PostgreSQL", "ebb", "loop/clients", "API", "total", "transactions", "others' cores")
}

// tableRow gives the medians of the rounds.
func tableRow(b *strings.Builder, s side) {
	cpu := func(of func(cost) float64) float64 { return s.median(func(w window) float64 { return of(w.CPU) }) }
	fmt.Fprintf(b, "  %-56s %8.0f | %33.2f %6.2f %12.2f %6.2f %6.2f | %12.2f | %14.2f\n", s.Name, s.rate(),
		cpu(func(c cost) float64 { return c.PostgreSQL }), cpu(func(c cost) float64 { return c.Ebb }),
		cpu(func(c cost) float64 { return c.Bench }), cpu(func(c cost) float64 { return c.API }), cpu(cost.total),
		s.median(func(w window) float64 { return w.Transactions }), s.median(func(w window) float64 { return w.Others }))
}

func (h *halfLoad) print(b *strings.Builder) {
	b.WriteString("\nlatencies of orders at a steady rate\n")
	tableHead(b)
	tableRow(b, side{Name: "Ebb", Windows: []window{h.Window}})
	fmt.Fprintf(b, "  %-58s %8s %8s\n", "milliseconds", "p50", "p99")
	for _, l := range []struct {
		name string
		of   probe.Spread
	}{
		{"order committed → record in Kafka", h.CommitToRecord},
		{"order committed → in the first consumer's journal", h.CommitToConsumer},
		{"record → request out (first steps)", h.RecordToRequest},
		{"reply → result committed (all steps)", h.ReplyToRecorded},
		{"step overhead: record → result, without the API's time", h.Overhead},
		{"chained step: predecessor → result, without the API's time", h.Chained},
		{"order → saga ended", h.ToConsistent},
		{"order → final status", h.ToStatus},
	} {
		fmt.Fprintf(b, "  %-58s %8.1f %8.1f\n", l.name, l.of.P50, l.of.P99)
	}
}

func (p *profiled) print(b *strings.Builder) {
	fmt.Fprintf(b, "\nprofile, %.0f orders/s; files in %s\n%s\n\nwith what they call\n%s\n", p.Profiled.PerSecond, p.Folder, p.Top, p.Cumulative)
	fmt.Fprintf(b, "\nsessions of PostgreSQL at a moment, %d samples\n", p.Waits.Samples)
	for _, c := range p.Waits.Top(p.Waits.Events, 15) {
		fmt.Fprintf(b, "  %6.2f  %s\n", c.Mean, c.Name)
	}
	b.WriteString("\nstatements at a moment\n")
	for _, c := range p.Waits.Top(p.Waits.Statements, 25) {
		fmt.Fprintf(b, "  %6.2f  %s\n", c.Mean, c.Name)
	}
	s := p.PerSaga
	fmt.Fprintf(b, "\nper saga, with %d open: %.2f transactions (one of them the client's); ebb alone: %.2f round trips, %.2f statements, %.3f prepared, %.0f bytes sent\n",
		s.Open, s.Transactions, s.Trips, s.Statements, s.Parses, s.Bytes)
}
