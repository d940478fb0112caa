package harness

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/sim"
)

// Oracle judges a pipeline that has come to rest (AwaitAllEnded): I1, I2 and I3, and what
// the wire shows of G3 and G4. It reports every violation that it finds with the
// history of its order, and needs the pipeline to run.
func Oracle(t testing.TB, e *Ebb, s *Sim) {
	t.Helper()
	for _, v := range Judge(t, e, s) {
		t.Errorf("%s", v)
	}
}

// Judge is Oracle for tests that expect violations: it gives them, one text each.
func Judge(t testing.TB, e *Ebb, s *Sim) []string {
	t.Helper()
	j := &judge{t: t, db: e.DB(), sim: s, effects: s.Effects()}
	j.load()
	j.money()
	j.ends()
	j.effectsOfSteps()
	j.requests()
	j.offsets(e)
	return j.found
}

type judge struct {
	t       testing.TB
	db      *pgxpool.Pool
	sim     *Sim
	effects []sim.Effect
	orders  map[string]orderRow
	steps   map[string]stepRow // by Idempotency-Key
	found   []string
}

// orderRow is an order with its create event's saga.
type orderRow struct {
	id, status, amount string
	attention          string
	state              string // of the saga, empty if there is none
	reason             string // for the saga's attention
}

type stepRow struct {
	order, key       string
	destination, dir string
	state, revert    string
	sagaState        string
	attention        string
	seq, epoch       int64
}

func (j *judge) breach(format string, args ...any) {
	j.found = append(j.found, fmt.Sprintf(format, args...))
}

// about adds an order's history to a breach.
func (j *judge) about(order, format string, args ...any) {
	j.breach("order %s: %s\n%s%s", order, fmt.Sprintf(format, args...), j.stepsOf(order), j.sim.History(order))
}

func (j *judge) stepsOf(order string) string {
	text := ""
	for _, key := range sortedKeys(j.steps) {
		if s := j.steps[key]; s.order == order {
			text += fmt.Sprintf("  step %s: %s, revert %q, seq %d, saga %s\n", key, s.state, s.revert, s.seq, s.sagaState)
		}
	}
	return text
}

const (
	oracleOrders = `SELECT o.id::text, o.status, trim_scale(o.total_amount)::text, coalesce(o.attention, ''), coalesce(s.state, ''), coalesce(s.attention, '')
FROM orders.orders o LEFT JOIN ebb.sagas s ON s.id = o.created_event`
	oracleSteps = `SELECT s.aggregate_id, t.saga_id || ':' || t.destination || ':' || t.direction, t.destination, t.direction, t.state, t.revert,
	s.state, s.attention, t.seq, t.epoch
FROM ebb.steps t JOIN ebb.sagas s ON s.id = t.saga_id`
)

func (j *judge) load() {
	ctx := context.Background()
	j.orders, j.steps = map[string]orderRow{}, map[string]stepRow{}
	rows, err := j.db.Query(ctx, oracleOrders)
	require.NoError(j.t, err)
	var o orderRow
	_, err = pgx.ForEachRow(rows, []any{&o.id, &o.status, &o.amount, &o.attention, &o.state, &o.reason}, func() error {
		j.orders[o.id] = o
		return nil
	})
	require.NoError(j.t, err)
	rows, err = j.db.Query(ctx, oracleSteps)
	require.NoError(j.t, err)
	var s stepRow
	_, err = pgx.ForEachRow(rows, []any{&s.order, &s.key, &s.destination, &s.dir, &s.state, &s.revert, &s.sagaState, &s.attention, &s.seq, &s.epoch}, func() error {
		j.steps[s.key] = s
		return nil
	})
	require.NoError(j.t, err)
}

// money is I1: what the simulator's own ledger says, and the exact amount of every order.
func (j *judge) money() {
	want := map[string]string{}
	for id, o := range j.orders {
		want[id] = o.amount
	}
	for _, v := range append(sim.Check(j.effects), sim.CheckAmounts(j.effects, want)...) {
		j.about(v.Aggregate, "I1: %s", v)
	}
	for _, e := range j.effects {
		if _, ok := j.orders[e.Aggregate]; !ok {
			j.breach("I1: effect %d is of order %s, which nobody knows: %s %s", e.Seq, e.Aggregate, e.Kind, e.Thing)
		}
	}
}

// ends is I2: one end per order, and the same in the order, in its saga and in the outside world.
func (j *judge) ends() {
	fits := map[string][]string{
		"COMPLETED": {"CONFIRMED", "SHIPPED", "DELIVERED"}, "COMPENSATED": {"CANCELLED", "REJECTED"},
	}
	for _, id := range sortedKeys(j.orders) {
		o := j.orders[id]
		switch {
		case o.reason != "" && o.attention == "":
			j.about(id, "I2: its saga waits for an operator (%s), but the order, %s, does not say so", o.reason, o.status)
		case o.attention != "" && o.reason == "" && o.state != "":
			j.about(id, "I2: the order has attention %q, but its saga, %s, has none", o.attention, o.state)
		case o.attention != "":
			// parked with a reason: an end, whatever the status
		case !contains(fits[o.state], o.status):
			j.about(id, "I2: the order is %s, its saga %q", o.status, o.state)
		}
	}
}

// effectsOfSteps is the other half of I2: every effect has its step, every success its effect, and what a saga's end says stands.
func (j *judge) effectsOfSteps() {
	done := map[string]sim.Effect{}   // by key
	undone := map[string]sim.Effect{} // by thing
	for _, e := range j.effects {
		if e.Direction == sim.Undo {
			undone[e.Thing] = e
		}
		done[e.Key] = e
	}
	for _, e := range j.effects {
		j.effectOfStep(e, undone)
	}
	for _, key := range sortedKeys(j.steps) {
		s := j.steps[key]
		e, has := done[key]
		switch {
		case s.state == "SUCCEEDED" && !has && s.destination != sim.FraudCheck:
			j.about(s.order, "I2: step %s has succeeded without an effect: something was lost, or never done", key)
		case s.dir == "do" && has && s.state == "SUCCEEDED" && s.sagaState == "COMPENSATED" && s.revert != "none":
			if _, gone := undone[e.Thing]; !gone {
				j.about(s.order, "I2: the saga is COMPENSATED, but %s %s stands", e.Kind, e.Thing)
			}
		}
	}
}

// effectOfStep finds what contradicts one effect.
func (j *judge) effectOfStep(e sim.Effect, undone map[string]sim.Effect) {
	s, known := j.steps[e.Key]
	switch {
	case !known:
		j.about(e.Aggregate, "I2: %s %s under key %q has no step in the journal", e.Kind, e.Thing, e.Key)
	case s.attention != "":
		// an operator has it in front of him, with the key
	case s.state != "SUCCEEDED":
		j.about(e.Aggregate, "I2: %s %s has happened, but its step is %s and its saga %s", e.Kind, e.Thing, s.state, s.sagaState)
	case e.Direction == sim.Do && s.sagaState == "COMPLETED":
		if by, gone := undone[e.Thing]; gone {
			j.about(e.Aggregate, "I2: the saga is COMPLETED, but %s %s was ended by effect %d", e.Kind, e.Thing, by.Seq)
		}
	}
}

// requests is what the wire shows of G3 and G4: no call without a step that was claimed for it, one request per claim at most, and
// the same bytes under the same key.
func (j *judge) requests() {
	first, count := map[string]sim.Call{}, map[string]int64{}
	for _, c := range j.sim.Calls(sim.Filter{}) {
		if _, known := j.steps[c.Key]; !known {
			j.about(c.Aggregate, "G3: call %d under key %q has no step in the journal", c.Seq, c.Key)
			continue
		}
		count[c.Key]++
		was, seen := first[c.Key]
		if !seen {
			first[c.Key] = c
			continue
		}
		if was.Method != c.Method || was.Target != c.Target || !bytes.Equal(was.Body, c.Body) {
			j.about(c.Aggregate, "G4: calls %d and %d have one key, %s, and differ", was.Seq, c.Seq, c.Key)
		}
	}
	for _, key := range sortedKeys(count) {
		if s := j.steps[key]; count[key] > s.epoch {
			j.about(s.order, "G4: %d requests for %d claims of %s", count[key], s.epoch, key)
		}
	}
}

// LIFO finds orders whose undos were not the reverse of their dos. It holds for runs in which no undo was held up (G7).
func LIFO(t testing.TB, s *Sim) {
	t.Helper()
	for _, v := range sim.CheckReverse(s.Effects()) {
		t.Errorf("G7: %s\n%s", v, s.History(v.Aggregate))
	}
}

// Tally is how the orders of a run ended, and what it took.
type Tally struct {
	Orders, Confirmed, Rejected, Cancelled, Attention int
	Calls, Effects                                    int
	Lost                                              int // calls whose caller got no whole answer
	Replayed                                          int // answers given again under the same key
	Undone                                            int
}

// Count sums a run up.
func Count(t testing.TB, e *Ebb, s *Sim) Tally {
	t.Helper()
	out := Tally{Effects: len(s.Effects())}
	err := e.DB().QueryRow(context.Background(), `SELECT count(*), count(*) FILTER (WHERE status IN ('CONFIRMED', 'SHIPPED', 'DELIVERED')),
	count(*) FILTER (WHERE status = 'REJECTED'), count(*) FILTER (WHERE status = 'CANCELLED'), count(attention) FROM orders.orders`).
		Scan(&out.Orders, &out.Confirmed, &out.Rejected, &out.Cancelled, &out.Attention)
	require.NoError(t, err)
	for _, c := range s.Calls(sim.Filter{}) {
		out.Calls++
		switch {
		case c.Reply == nil || c.Reply.Status == 0:
			out.Lost++
		case c.Reply.Replayed:
			out.Replayed++
		}
	}
	out.Undone = len(s.EffectsOf(sim.Filter{Direction: sim.Undo}))
	return out
}

// String is one line.
func (t Tally) String() string {
	return fmt.Sprintf("%d orders: %d confirmed, %d rejected, %d cancelled, %d with attention; %d calls, %d without a whole answer, %d answered again; %d effects, %d of them undos",
		t.Orders, t.Confirmed, t.Rejected, t.Cancelled, t.Attention, t.Calls, t.Lost, t.Replayed, t.Effects, t.Undone)
}
