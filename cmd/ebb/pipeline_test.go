package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/schemas"
)

var update = flag.Bool("update", false, "write golden files")

// pipeline is a running `ebb up`, and commands that find it by its data folder.
type pipeline struct {
	t    *testing.T
	data string
	slot string
	run  runFile
}

func startPipeline(t *testing.T) *pipeline {
	t.Helper()
	p := &pipeline{t: t, data: t.TempDir(), slot: testkit.Name(t, "slot")}
	ctx, stop := context.WithCancel(context.Background())
	var out, errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{
			"up", "--quiet", "--data", p.data, "--http", "127.0.0.1:0", "--sim-http", "127.0.0.1:0", "--destinations", "testdata/destinations",
			"--postgres", testkit.DB(t), "--slot", p.slot, "--log-level", "warn",
		}, &out, &errs)
	}()
	t.Cleanup(func() {
		stop()
		require.Equal(t, exitOK, <-ended, errs.String())
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	testkit.Eventually(t, func() (bool, string) {
		select {
		case status := <-ended:
			ended <- status
			t.Fatalf("ebb up ended with %d: %s", status, errs.String())
		default:
		}
		r, err := readRunFile(runPath(p.data))
		if err != nil {
			return false, err.Error()
		}
		p.run = r
		resp, err := http.Get(r.HTTP + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK, resp.Status
	}, time.Minute)
	return p
}

// ok runs a command that has to succeed and gives what it printed.
func (p *pipeline) ok(args ...string) string {
	p.t.Helper()
	out, stderr := p.exits(exitOK, args...)
	require.Empty(p.t, stderr, args)
	return out
}

// exits runs a command that has to end with the exit code.
func (p *pipeline) exits(status int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	got, stdout, stderr := ebb(p.t, append(args, "--data", p.data)...)
	require.Equal(p.t, status, got, "%v\n%s%s", args, stdout, stderr)
	return stdout, stderr
}

// lines runs a command with --json and gives its documents.
func (p *pipeline) lines(args ...string) []map[string]any {
	p.t.Helper()
	return documents(p.t, p.ok(append(args, "--json")...))
}

func documents(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		var v map[string]any
		require.NoError(t, dec.Decode(&v), "every line is a document: %s", text)
		out = append(out, v)
	}
	return out
}

// changing is what differs from run to run, and what stands for it. The order matters.
var changing = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), "<time>"},
	{regexp.MustCompile(`\+?-?\b[0-9.]+(µs|ms|s)\b`), "<duration>"},
	{regexp.MustCompile(`completed as \d+`), "completed as <seq>"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "<address>"},
	{regexp.MustCompile(`[0-9.]+ per second`), "<rate> per second"},
	{regexp.MustCompile(` {2,}`), "  "},
}

// golden compares what a command printed with testdata/golden/NAME, up to what differs from run to run.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, c := range changing {
		got = c.pattern.ReplaceAllString(got, c.by)
	}
	path := filepath.Join("testdata", "golden", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./cmd/ebb -update writes %s", path)
}

// shape is the names and types of JSON documents, one member a line: what scripts rely on.
func shape(docs ...map[string]any) string {
	members := map[string]string{}
	for _, d := range docs {
		shapeOf("", d, members)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		fmt.Fprintf(&b, "%s: %s\n", name, members[name])
	}
	return b.String()
}

func shapeOf(at string, v any, into map[string]string) {
	note := func(kind string) {
		if into[at] == "" || into[at] == "null" {
			into[at] = kind
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			note("object")
		}
		for name, member := range v {
			shapeOf(strings.TrimPrefix(at+"."+name, "."), member, into)
		}
	case []any:
		if len(v) == 0 {
			note("list")
		}
		for _, item := range v {
			shapeOf(at+"[]", item, into)
		}
	case string:
		note("string")
	case json.Number:
		note("number")
	case bool:
		note("bool")
	default:
		note("null")
	}
}

func TestCommandsOnARunningPipeline(t *testing.T) {
	t.Parallel()
	p := startPipeline(t)

	t.Run("create an order and wait for its end", func(t *testing.T) {
		golden(t, "order-create", p.ok("order", "create", "--customer", "c-1", "--amount", "99.90", "--wait"))
		golden(t, "order-list", p.ok("order", "list"))
		golden(t, "order-list-none", p.ok("order", "list", "--status", "SHIPPED"))
		golden(t, "saga-list", p.ok("saga", "list"))
		golden(t, "saga-show", p.ok("saga", "show", "1"))
		require.Equal(t, "CONFIRMED\n", p.ok("order", "status", "1"))
		shown := p.lines("order", "show", "1")
		require.Equal(t, "99.90", shown[0]["totalAmount"], "money is a string, digit for digit")
		golden(t, "order-show.shape", shape(shown...))
		golden(t, "order-list.shape", shape(p.lines("order", "list")...))
		golden(t, "saga-list.shape", shape(p.lines("saga", "list")...))
	})
	t.Run("the same key creates one order", func(t *testing.T) {
		args := []string{"order", "create", "--customer", "c-2", "--amount", "12", "--key", "again", "--wait"}
		require.Equal(t, p.lines(args...)[0]["id"], p.lines(args...)[0]["id"])
		_, stderr := p.exits(exitRefused, "order", "create", "--customer", "c-3", "--amount", "12", "--key", "again")
		require.Contains(t, stderr, "422")
	})
	t.Run("cancel and undo", func(t *testing.T) {
		golden(t, "order-cancel", p.ok("order", "cancel", "1", "--reason", "changed my mind", "--wait"))
		_, stderr := p.exits(exitRefused, "order", "status", "1", "SHIPPED")
		require.Contains(t, stderr, "see `ebb order show 1`")
		golden(t, "sim-ledger", p.ok("sim", "ledger", "--order", "1"))
		golden(t, "sim-ledger-calls", p.ok("sim", "ledger", "calls", "--order", "1", "--direction", "undo"))
		golden(t, "sim-ledger-summary", p.ok("sim", "ledger", "summary", "--order", "1"))
		golden(t, "sim-ledger.shape", shape(p.lines("sim", "ledger", "--order", "1")...))
		require.Equal(t, "no violations\n", p.ok("sim", "ledger", "check"))
	})
	t.Run("a step that waits says for what", func(t *testing.T) { p.waits(t) })
	t.Run("a parked step and its retry", func(t *testing.T) { p.parks(t) })
	t.Run("destinations", func(t *testing.T) {
		golden(t, "destination-list", p.ok("destination", "list"))
		golden(t, "destination-list.shape", shape(p.lines("destination", "list")...))
	})
	t.Run("dead letters", func(t *testing.T) { p.deadLetters(t) })
	t.Run("faults and rates", func(t *testing.T) { p.simulator(t) })
	t.Run("load", func(t *testing.T) {
		report := p.lines("sim", "load", "--rate", "0", "--count", "12", "--mix", "domestic=1,international=1,cancelled=1", "--workers", "3")
		require.Equal(t, map[string]any{"CONFIRMED": json.Number("8"), "CANCELLED": json.Number("4")}, report[0]["ends"])
		golden(t, "sim-load.shape", shape(report...))
		golden(t, "sim-load", p.ok("sim", "load", "--rate", "0", "--count", "2", "--mix", "domestic=1"))
	})
	t.Run("setting up again changes nothing", func(t *testing.T) {
		for name, args := range map[string][]string{
			"migrate": {"migrate", "--slot", p.slot}, "topics-apply": {"topics", "apply"}, "schemas-apply": {"schemas", "apply"}, "schemas-check": {"schemas", "check"},
			"config-apply": {"config", "apply", "testdata/destinations"},
		} {
			if name == "schemas-check" { // asks no running Ebb
				status, out, stderr := ebb(t, append(args, "--json")...)
				require.Equal(t, exitOK, status, stderr)
				golden(t, name+".shape", shape(documents(t, out)...))
				continue
			}
			docs := p.lines(args...)
			golden(t, name+".shape", shape(docs...))
			for _, made := range []string{"publicationMade", "slotMade", "created", "new"} {
				for _, d := range docs {
					require.NotEqual(t, true, d[made], "%s: %v", name, d)
				}
			}
			require.NotEmpty(t, p.ok(args...))
		}
		require.Equal(t, "unchanged", p.lines("config", "apply", "testdata/destinations", "--dry-run")[0]["action"])
	})
	t.Run("what does not exist", func(t *testing.T) {
		for _, args := range [][]string{{"order", "show", "999"}, {"saga", "show", "999"}, {"dlq", "show", "999"}, {"sim", "faults", "clear", "f999"}} {
			_, stderr := p.exits(exitNotFound, args...)
			require.Contains(t, stderr, "ebb: ")
		}
		_, stderr := p.exits(exitNotFound, "order", "show", "999", "--json")
		require.Equal(t, json.Number("4"), documents(t, stderr)[0]["exit"], "errors are JSON too")
	})
	t.Run("what is not right names every bad field", func(t *testing.T) {
		_, stderr := p.exits(exitUsage, "order", "create", "--customer", "", "--amount", "1.234")
		require.Contains(t, stderr, "customerId: ")
		require.Contains(t, stderr, "totalAmount: ")
	})
}

// waits holds the inventory's answer back, so that billing has to wait for it.
func (p *pipeline) waits(t *testing.T) {
	p.ok("sim", "faults", "set", "--action", "hang", "--destination", "inventory")
	order := p.lines("order", "create", "--customer", "c-4", "--amount", "7")[0]["id"].(json.Number).String()
	var text string
	testkit.Eventually(t, func() (bool, string) {
		if code, out, _ := ebb(t, "saga", "show", order, "--data", p.data); code == exitOK {
			text = out
		}
		return strings.Contains(text, "waits for inventory (CALLING)"), text
	}, time.Minute)
	require.Contains(t, text, "waits for the destination's answer")
	_, stderr := p.exits(exitFailed, "order", "show", order, "--wait", "--timeout", "1ms")
	require.Contains(t, stderr, "is still PENDING")
	p.ok("sim", "faults", "clear")
	require.Equal(t, "CONFIRMED", p.lines("order", "show", order, "--wait")[0]["status"])
	steps := p.lines("saga", "show", order)[0]["steps"].([]any)
	for _, s := range steps {
		if step := s.(map[string]any); step["destination"] == "inventory" {
			require.Equal(t, "UNKNOWN", step["attempts"].([]any)[0].(map[string]any)["class"], "every attempt is shown with its class")
		}
	}
}

// parks lets billing refuse, which parks there.
func (p *pipeline) parks(t *testing.T) {
	made := p.lines("order", "create", "--customer", "c-5-refuse-billing", "--amount", "7", "--wait")[0]
	require.NotNil(t, made["attention"])
	id := made["createdEvent"].(string)
	testkit.Eventually(t, func() (bool, string) {
		text := p.ok("saga", "show", id)
		return strings.Contains(text, "PARKED"), text
	}, time.Minute)
	golden(t, "saga-show-parked", p.ok("saga", "show", id))
	golden(t, "saga-show.shape", shape(p.lines("saga", "show", id)...))
	golden(t, "saga-list-attention", p.ok("saga", "list", "--attention"))
	require.Len(t, p.lines("order", "list", "--attention"), 1)
	require.Contains(t, p.ok("saga", "retry", id, "billing", "--reason", "asked them"), "billing do goes on")
	testkit.Eventually(t, func() (bool, string) {
		text := p.ok("saga", "show", id)
		return strings.Contains(text, "PARKED") && strings.Count(text, "REFUSED") == 2, text
	}, time.Minute) // the answer under the same key is the same
	_, stderr := p.exits(exitRefused, "saga", "retry", id, "inventory", "--reason", "asked them")
	require.Contains(t, stderr, "see `ebb saga show "+id)
	p.exits(exitNotFound, "saga", "retry", id, "nobody", "--reason", "asked them")
}

// deadLetters writes a record that nobody can read.
func (p *pipeline) deadLetters(t *testing.T) {
	require.Equal(t, "no dead letters\n", p.ok("dlq", "list", "--reader", "ebb.billing"))
	client, err := kgo.NewClient(kgo.SeedBrokers(p.run.Brokers...))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{
		Topic: schemas.TopicOrder, Key: []byte("42"), Value: []byte{0, 0xff, 'x'},
		Headers: []kgo.RecordHeader{{Key: "id", Value: []byte("not an id")}, {Key: "none"}},
	}).FirstErr())
	var letter map[string]any
	testkit.Eventually(t, func() (bool, string) {
		found := p.lines("dlq", "list", "--reader", "ebb.billing")
		if len(found) == 1 {
			letter = found[0]
		}
		return letter != nil, "no dead letter yet"
	}, time.Minute)
	id := letter["id"].(json.Number).String()
	full := p.lines("dlq", "show", id)[0]
	golden(t, "dlq-show.shape", shape(full))
	require.Equal(t, map[string]any{"base64": "AP94"}, full["value"], "bytes that are no text are base64 alone")
	require.Equal(t, map[string]any{"base64": "NDI=", "utf8": "42"}, full["key"])
	golden(t, "dlq-groups", p.ok("dlq", "list", "--groups", "--reader", "ebb.billing"))
	golden(t, "dlq-groups.shape", shape(p.lines("dlq", "list", "--groups", "--reader", "ebb.billing")...))
	require.Equal(t, "\x00\xffx", p.ok("dlq", "show", id, "--raw"))
	text := p.ok("dlq", "show", id)
	require.Contains(t, text, "base64:AP94")
	require.Contains(t, text, "header:   none = null")
	require.Contains(t, text, "position: "+schemas.TopicOrder+" partition 0 offset ")
	require.Contains(t, p.ok("dlq", "list", "--reader", "ebb.billing", "--topic", schemas.TopicOrder), "ebb.billing")
}

func (p *pipeline) simulator(t *testing.T) {
	require.Equal(t, "no faults\n", p.ok("sim", "faults"))
	set := p.lines("sim", "faults", "set", "--action", "reply", "--destination", "billing", "--status", "418", "--header", "X-A: b", "--body", `{"a":1}`,
		"--probability", "0.25", "--for", "1h")
	require.Equal(t, "418", set[0]["status"].(json.Number).String())
	golden(t, "sim-faults.shape", shape(set...))
	golden(t, "sim-faults", p.ok("sim", "faults", "list"))
	script := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, os.WriteFile(script, []byte(`{"faults":[{"action":"lose","destination":"shipping"}]}`), 0o600))
	require.Contains(t, p.ok("sim", "faults", "set", "--file", script), "lose")
	require.Len(t, p.lines("sim", "faults", "list"), 1)
	require.Equal(t, "no faults\n", p.ok("sim", "faults", "clear"))
	for _, bad := range [][]string{
		{"sim", "faults", "set"},
		{"sim", "faults", "set", "--action", "explode"},
		{"sim", "faults", "set", "--action", "lose", "--probability", "2"},
		{"sim", "faults", "set", "--action", "reply", "--status", "200", "--header", "nothing"},
		{"sim", "faults", "set", "--file", script + ".none"},
		{"sim", "rates", "billing.charge=2"},
		{"sim", "rates", "nobody.charge=0.5"},
		{"sim", "load", "--mix", "domestic=0"},
		{"sim", "load", "--count", "1", "--workers", "-1"},
	} {
		p.exits(exitUsage, bad...)
	}
	now := p.lines("sim", "rates", "billing.charge=0.3", "--refuse", "billing=0.1", "--latency", "billing=1ms..2ms", "--idempotency", "billing=off")[0]
	require.Equal(t, "0.3", now["rates"].(map[string]any)["billing.charge"])
	golden(t, "sim-rates", p.ok("sim", "rates"))
	p.ok("sim", "rates", "--quiet", "--latency", "billing=0s", "--idempotency", "billing=on")
}
