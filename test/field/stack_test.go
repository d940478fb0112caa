package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// stack is one pipeline of a case: `ebb up` as a child process, the destinations here, and sometimes a second instance of a role.
type stack struct {
	t      *testing.T
	dir    string
	sim    *harness.Sim
	ebb    *harness.Ebb
	orders *harness.Orders
	n      int // orders created, which is the newest one's id
	others []*harness.Process
}

// canary is the credential that every call carries, and nothing else may (I4).
const canary = "canary-c41d7e"

// failpoints is the environment of a first run with failpoints.
func failpoints(list ...string) string { return strings.Join(list, ",") }

// start starts a pipeline with one partition per topic, so that the first instance reads all of it, and debug logs.
func start(t *testing.T, f *fixture, firstRun string) *stack {
	t.Helper()
	return startOn(t, f, firstRun, 1)
}

func startOn(t *testing.T, f *fixture, firstRun string, partitions int) *stack {
	t.Helper()
	s := &stack{t: t, dir: f.write(t), sim: harness.StartSim(t)}
	s.ebb = harness.Start(t, harness.Options{
		Sim: s.sim, Destinations: s.dir, Partitions: partitions, Failpoints: firstRun, Env: []string{"EBB_LOG_LEVEL=debug", "FIELD_TOKEN=" + canary},
	})
	s.orders = s.ebb.Orders()
	return s
}

// second starts another instance of a destination's consumer, and waits until both share the group.
func (s *stack) second(destination string) *harness.Role {
	s.t.Helper()
	return s.role("ebb."+destination, failpoints(), "consumer", "--destination", destination)
}

func (s *stack) role(group, firstRun, name string, args ...string) *harness.Role {
	s.t.Helper()
	r := harness.NewRole(s.t, s.ebb, name, args...)
	s.others = append(s.others, r.Process)
	r.Restart("EBB_FAILPOINTS=" + firstRun)
	admin := s.admin()
	s.until(func() (bool, string) {
		groups, err := admin.DescribeGroups(s.t.Context(), group)
		if err != nil {
			return false, err.Error()
		}
		g := groups[group]
		return g.State == "Stable" && len(g.Members) == 2, fmt.Sprintf("group %s is %s with %d members", group, g.State, len(g.Members))
	})
	return r
}

// resume lets everything go on that stands at a failpoint.
func resume(p interface{ Signal(sig syscall.Signal) }) { p.Signal(syscall.SIGUSR1) }

// until waits for a condition.
func (s *stack) until(cond func() (bool, string)) {
	s.t.Helper()
	testkit.Eventually(s.t, cond, 0)
}

// create creates an order; ids count from 1.
func (s *stack) create() string {
	s.t.Helper()
	s.n++
	id := s.orders.Create(harness.ClientKey("order", s.n), harness.Order{})
	require.Equal(s.t, fmt.Sprint(s.n), id)
	return id
}

// cancel cancels an order, as a new request each time.
func (s *stack) cancel(id string) {
	s.t.Helper()
	s.orders.Cancel("", id)
}

// await waits for the order's status.
func (s *stack) await(id, status string) {
	s.t.Helper()
	s.orders.AwaitOrder(id, status)
}

// awaitAttention waits until an operator is asked to look at the order, with a reason that contains the text.
func (s *stack) awaitAttention(id, reason string) {
	s.t.Helper()
	s.orders.Await(id, "parked: "+reason, func(v harness.OrderView) bool {
		return v.Attention != nil && strings.Contains(*v.Attention, reason) && strings.Contains(v.Saga().Attention, reason)
	})
}

func (s *stack) order(id string) harness.OrderView { return s.orders.Get(id) }

func (s *stack) saga(id string) journal.SagaView { return s.orders.Get(id).Saga() }

func (s *stack) sagaID(id string) string { return s.orders.Get(id).Event }

// states lists the saga's steps as "billing do" with their states.
func (s *stack) states(id string) map[string]string {
	out := map[string]string{}
	for _, t := range s.saga(id).Steps {
		out[t.Destination+" "+t.Direction] = t.State
	}
	return out
}

// stepRow is what cases compare of a step.
type stepRow struct {
	State   string
	Maybe   bool
	Attempt int
	Epoch   int64
}

// step reads a step from the journal, which is there when the pipeline is not. The zero row is a step that does not exist.
func (s *stack) step(id, destination, direction string) stepRow {
	s.t.Helper()
	var r stepRow
	err := s.ebb.DB().QueryRow(s.t.Context(), `SELECT t.state, t.maybe, t.attempt, t.epoch FROM ebb.steps t JOIN ebb.sagas s ON s.id = t.saga_id
		WHERE s.role = 'create' AND s.aggregate_id = $1 AND t.destination = $2 AND t.direction = $3`, id, destination, direction).
		Scan(&r.State, &r.Maybe, &r.Attempt, &r.Epoch)
	if !errors.Is(err, pgx.ErrNoRows) {
		require.NoError(s.t, err)
	}
	return r
}

// text asks the database for one value as text.
func (s *stack) text(sql string, args ...any) string {
	s.t.Helper()
	var out string
	require.NoError(s.t, s.ebb.DB().QueryRow(s.t.Context(), sql, args...).Scan(&out))
	return out
}

// lease is when the claim of a forward step runs out.
func (s *stack) lease(id, destination string) time.Time {
	s.t.Helper()
	var at time.Time
	require.NoError(s.t, s.ebb.DB().QueryRow(s.t.Context(), `SELECT t.lease_until FROM ebb.steps t JOIN ebb.sagas s ON s.id = t.saga_id
		WHERE s.aggregate_id = $1 AND t.destination = $2 AND t.direction = 'do'`, id, destination).Scan(&at))
	return at
}

func (s *stack) calls(id, destination string, dir sim.Direction) []sim.Call {
	s.t.Helper()
	return s.sim.Calls(sim.Filter{Aggregate: id, Destination: destination, Direction: dir})
}

func (s *stack) effects(id, destination string, dir sim.Direction) []sim.Effect {
	return s.sim.EffectsOf(sim.Filter{Aggregate: id, Destination: destination, Direction: dir})
}

// kinds lists what happened to the order in the outside world.
func (s *stack) kinds(id string) []sim.Kind {
	var out []sim.Kind
	for _, e := range s.effects(id, "", "") {
		out = append(out, e.Kind)
	}
	return out
}

// sameCalls is G4: every call of the step is the same request under its one key. n is their number, -1 for any.
func (s *stack) sameCalls(id, destination string, dir sim.Direction, n int) []sim.Call {
	s.t.Helper()
	calls := s.calls(id, destination, dir)
	if n >= 0 {
		require.Len(s.t, calls, n, "calls of %s %s for order %s:\n%s", destination, dir, id, s.sim.History(id))
	}
	require.NotEmpty(s.t, calls)
	for _, c := range calls {
		require.Equal(s.t, fmt.Sprintf("%s:%s:%s", s.sagaID(id), destination, dir), c.Key)
		require.Equal(s.t, []string{c.Key}, c.Header.Values("Idempotency-Key"))
		require.Equal(s.t, calls[0].Method+" "+calls[0].Target+"\n"+string(calls[0].Body), c.Method+" "+c.Target+"\n"+string(c.Body))
	}
	return calls
}

// firstReplyIsKept checks that the receipt of the charge is that of the operation that had the effect.
func (s *stack) firstReplyIsKept(id string) {
	s.t.Helper()
	effects := s.effects(id, sim.Billing, sim.Do)
	require.Len(s.t, effects, 1)
	reply := s.text(`SELECT convert_from(reply_body, 'UTF8') FROM ebb.calls
		WHERE saga_id = $1::uuid AND destination = 'billing' AND direction = 'do' AND settled`, s.sagaID(id))
	require.Contains(s.t, reply, effects[0].Thing)
}

// completed waits until the order is confirmed and checks that it was charged once, in so many calls, with one result row each.
func (s *stack) completed(id string, billingCalls int) {
	s.t.Helper()
	s.await(id, "CONFIRMED")
	s.sameCalls(id, sim.Billing, sim.Do, billingCalls)
	require.Len(s.t, s.effects(id, sim.Billing, ""), 1)
	require.Equal(s.t, "1", s.text(`SELECT count(*)::text FROM ebb.steps WHERE saga_id = $1::uuid AND destination = 'billing'`, s.sagaID(id)))
	want := map[string]string{"inventory do": "SUCCEEDED", "fraudCheck do": "SUCCEEDED", "shipping do": "SUCCEEDED", "billing do": "SUCCEEDED"}
	s.until(func() (bool, string) { // a commit may be in Kafka a moment before other sessions see it
		got := s.states(id)
		return maps.Equal(want, got), fmt.Sprint(got)
	})
}

func (s *stack) faults(list ...sim.Fault) { s.t.Helper(); s.sim.Add(list...) }

func (s *stack) remove(id string) { s.t.Helper(); s.sim.Remove(sim.Fault{ID: id}) }

func (s *stack) heal() { s.t.Helper(); s.sim.Heal() }

// refuse makes a destination refuse these orders and no other.
func (s *stack) refuse(destination string, ids ...string) {
	s.t.Helper()
	s.sim.Change(sim.Settings{Refuse: map[string][]string{destination: ids}})
}

// killed waits until the first instance has died at the failpoint.
func (s *stack) killed(place string) {
	s.t.Helper()
	s.ebb.WaitLine("failpoint " + place + ": kill")
	require.Equal(s.t, -1, s.ebb.Wait())
}

func (s *stack) kill() { s.ebb.Kill() }

// restart starts the first instance again, now with these failpoints.
func (s *stack) restart(list ...string) {
	s.t.Helper()
	s.ebb.Restart("EBB_FAILPOINTS=" + failpoints(list...))
}

// refused is the exit code of a command that the state of what it names forbids.
const refused = 5

// run runs a short command.
func (s *stack) run(args ...string) (out string, code int) {
	s.t.Helper()
	return s.ebb.CLI(args...)
}

// metrics is what the first instance tells a monitoring system.
func (s *stack) metrics() string {
	s.t.Helper()
	resp, err := http.Get(s.ebb.API() + "/metrics")
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return string(text)
}

// rewrite changes the destination files.
func (s *stack) rewrite(f *fixture) {
	s.t.Helper()
	harness.RewriteDestinations(s.t, s.dir, f.texts())
}

func (s *stack) admin() *kadm.Client {
	s.t.Helper()
	_, admin := s.ebb.Kafka()
	return admin
}

// lag is how many records of its topics the group's offsets have not passed.
func (s *stack) lag(admin *kadm.Client, group string) (int64, error) {
	topics := []string{schemas.TopicOrder}
	if group == "ebb.compensator" {
		topics = append(topics, schemas.TopicCompensation)
	}
	ends, err := admin.ListEndOffsets(s.t.Context(), topics...)
	if err != nil {
		return 0, err
	}
	committed, err := admin.FetchOffsets(s.t.Context(), group)
	if err != nil {
		return 0, err
	}
	var lag int64
	ends.Each(func(o kadm.ListedOffset) {
		at := int64(0)
		if c, ok := committed.Lookup(o.Topic, o.Partition); ok {
			at = max(c.At, 0)
		}
		lag += o.Offset - at
	})
	return lag, nil
}

// behind is the group's lag now.
func (s *stack) behind(group string) int64 {
	s.t.Helper()
	lag, err := s.lag(s.admin(), group)
	require.NoError(s.t, err)
	return lag
}

// read waits until the group's committed offsets have passed every record there is.
func (s *stack) read(group string) {
	s.t.Helper()
	admin := s.admin()
	s.until(func() (bool, string) {
		lag, err := s.lag(admin, group)
		return err == nil && lag == 0, fmt.Sprintf("%s is %d behind: %v", group, lag, err)
	})
}

// repeat waits for a record of the event type and produces it so many times more, byte for byte, on each partition in turn.
func (s *stack) repeat(topic, eventType string, times int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	c, admin := s.ebb.Kafka(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	is := func(r *kgo.Record) bool {
		return slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
			return h.Key == schemas.HeaderEventType && string(h.Value) == eventType
		})
	}
	topics, err := admin.ListTopics(ctx, topic)
	require.NoError(s.t, err)
	partitions := int32(len(topics[topic].Partitions))
	for {
		fetches := c.PollFetches(ctx)
		require.NoError(s.t, fetches.Err0())
		records := fetches.Records()
		i := slices.IndexFunc(records, is)
		if i < 0 {
			continue
		}
		for n := range times {
			r := &kgo.Record{Topic: topic, Key: records[i].Key, Value: records[i].Value, Headers: records[i].Headers}
			r.Partition = (records[i].Partition + int32(n) + 1) % partitions
			require.NoError(s.t, c.ProduceSync(ctx, r).FirstErr())
		}
		return
	}
}

// oracle judges the whole of it once it has come to rest. What is on its way to Kafka is waited for.
func (s *stack) oracle() {
	s.t.Helper()
	s.orders.AwaitAllEnded(s.n)
	s.until(func() (bool, string) {
		found := harness.Judge(s.t, s.ebb, s.sim)
		return len(found) == 0, strings.Join(found, "\n")
	})
	for _, c := range s.sim.Calls(sim.Filter{}) {
		require.Equal(s.t, "Bearer "+canary, c.Header.Get("Authorization"))
	}
	harness.Canary(s.t, s.ebb, canary, s.others...)
}

// rerun is I5: everything is read again, by the first instance alone, and nothing comes of it.
func (s *stack) rerun() {
	s.t.Helper()
	for _, p := range s.others {
		require.Zero(s.t, p.Stop(), p.Name())
	}
	harness.Rerun(s.t, s.ebb, s.sim)
}
