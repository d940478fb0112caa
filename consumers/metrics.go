package consumers

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// Metrics of all consumers of a process. A nil *Metrics reports nothing.
type Metrics struct {
	attempts *prometheus.CounterVec
	retries  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	records  *prometheus.CounterVec
	lag      *prometheus.GaugeVec
	open     *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	label := []string{"destination"}
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ebb_attempts_total", Help: "Ended attempts by direction and class."},
			[]string{"destination", "direction", "class"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ebb_retries_total", Help: "Attempts after a step's first."},
			[]string{"destination", "direction"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "ebb_call_seconds", Help: "Duration of calls.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, label),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ebb_records_total", Help: "Records taken in, by what became of them."},
			[]string{"destination", "result"}),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ebb_ingest_lag_seconds",
			Help: "Age of the newest record when it was taken in."}, []string{"destination", "partition"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ebb_breaker_state", Help: "0 closed, 1 ramping, 2 open."}, label),
	}
	reg.MustRegister(m.attempts, m.retries, m.duration, m.records, m.lag, m.open)
	return m
}

func (m *Metrics) attempt(dest string, dir saga.Direction, class saga.Class, attempt int, d time.Duration) {
	if m == nil {
		return
	}
	m.attempts.WithLabelValues(dest, dir.String(), class.String()).Inc()
	if attempt > 1 {
		m.retries.WithLabelValues(dest, dir.String()).Inc()
	}
	m.duration.WithLabelValues(dest).Observe(d.Seconds())
}

func (m *Metrics) breaker(dest string, s BreakerState) {
	if m != nil {
		m.open.WithLabelValues(dest).Set(float64(s))
	}
}

func (m *Metrics) ingested(dest string, got journal.Ingested, records []*kgo.Record) {
	if m == nil {
		return
	}
	nulls := 0
	for _, r := range records {
		if r.Value == nil {
			nulls++
		}
	}
	m.records.WithLabelValues(dest, "event").Add(float64(got.Events))
	m.records.WithLabelValues(dest, "skipped").Add(float64(got.Skipped - nulls))
	m.records.WithLabelValues(dest, "null").Add(float64(nulls))
	m.records.WithLabelValues(dest, "dead_letter").Add(float64(got.DeadLetters))
	last := records[len(records)-1]
	m.lag.WithLabelValues(dest, strconv.Itoa(int(last.Partition))).Set(time.Since(last.Timestamp).Seconds())
}

// Backlog reports, at each scrape, what destinations still have to do.
type Backlog struct {
	// Of reads a destination's backlog.
	Of func(ctx context.Context, destination string) (journal.Backlog, error)
	// Destinations to report.
	Destinations []string
}

var (
	oldestDesc = prometheus.NewDesc("ebb_oldest_unsettled_seconds", "Age of the oldest step that is due, in flight or being resolved.", []string{"destination"}, nil)
	stepsDesc  = prometheus.NewDesc("ebb_steps", "Steps that are not settled, by state.", []string{"destination", "state"}, nil)
)

// Describe implements prometheus.Collector.
func (b Backlog) Describe(ch chan<- *prometheus.Desc) {
	ch <- oldestDesc
	ch <- stepsDesc
}

// Collect implements prometheus.Collector; a database that does not answer leaves the values out.
func (b Backlog) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, d := range b.Destinations {
		got, err := b.Of(ctx, d)
		if err != nil {
			return
		}
		gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
		}
		gauge(oldestDesc, got.Oldest.Seconds(), d)
		gauge(stepsDesc, float64(got.Ready), d, "ready")
		gauge(stepsDesc, float64(got.Calling), d, "calling")
		gauge(stepsDesc, float64(got.Parked), d, "parked")
	}
}
