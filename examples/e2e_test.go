package invoicing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/consumers/handler"

	"example.com/invoicing/invoices"
	"example.com/invoicing/ledger"
)

// An invoice goes through its own outbox, the relay and Kafka into the accounting system; where another destination refuses, its booking
// is reversed.
func TestInvoicesAreBookedAndReversed(t *testing.T) {
	e := startEbb(t)
	pool, err := pgxpool.New(t.Context(), e.cfg.DSN)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, invoices.Migrate(t.Context(), pool))
	e.run("migrate", "--outbox", "invoices.outbox")
	e.run("topics", "apply", "--aggregate", invoices.AggregateType, "--partitions", "1")
	e.start("relay", "--outbox", "invoices.outbox")
	e.start("compensator")

	books := newBooks(t)
	e.destination(ledger.Destination(ledger.Ledger{URL: books.URL, Client: books.Client()}))
	e.destination(credit())

	good, err := invoices.Issue(t.Context(), pool, invoices.Invoice{Customer: "ada", Total: "99.90", Currency: "EUR"})
	require.NoError(t, err)
	bad, err := invoices.Issue(t.Context(), pool, invoices.Invoice{Customer: "mallory", Total: "12345678901234.5", Currency: "EUR"})
	require.NoError(t, err)
	require.Equal(t, "COMPLETED", await(t, pool, good))
	require.Equal(t, "COMPENSATED", await(t, pool, bad))
	require.Equal(t, map[string]string{good: "99.90 EUR", bad: "12345678901234.5 EUR, reversed"}, books.all())
}

// credit is a second destination, which refuses some customers after the booking.
func credit() handler.Destination {
	d := ledger.Destination(ledger.Ledger{})
	d.Name, d.After, d.Handler = "credit", []string{"ledger"}, creditCheck{}
	return d
}

type creditCheck struct{}

func (creditCheck) Prepare(_ context.Context, s handler.Step) (handler.Request, error) {
	return handler.Request{Body: s.Event}, nil
}

func (creditCheck) Send(_ context.Context, r handler.Request) (handler.Result, error) {
	if strings.Contains(string(r.Body), "mallory") {
		return handler.Result{}, handler.Refuse("no credit")
	}
	return handler.Result{}, nil
}

func (creditCheck) Undo(context.Context, handler.Request) (handler.Result, error) {
	return handler.Result{}, nil
}

// books is the accounting system.
type books struct {
	*httptest.Server

	mu   sync.Mutex
	keys map[string]string // idempotency key to booking
	is   map[string]string // booking to what it says
	of   map[string]string // booking to invoice
}

func newBooks(t *testing.T) *books {
	b := &books{keys: map[string]string{}, is: map[string]string{}, of: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /bookings", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Invoice, Currency string
			Amount            json.Number
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if b.keys[key] == "" {
			id := fmt.Sprintf("b-%d", len(b.is)+1)
			b.keys[key], b.is[id], b.of[id] = id, in.Amount.String()+" "+in.Currency, in.Invoice
		}
		fmt.Fprintf(w, `{"id":%q}`, b.keys[key])
	})
	mux.HandleFunc("POST /bookings/{id}/reversal", func(_ http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if id := r.PathValue("id"); !strings.HasSuffix(b.is[id], "reversed") {
			b.is[id] += ", reversed"
		}
	})
	b.Server = httptest.NewServer(mux)
	t.Cleanup(b.Close)
	return b
}

// all is what is booked, by invoice.
func (b *books) all() map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for id, text := range b.is {
		out[b.of[id]] += text
	}
	return out
}

// await waits for the end of an invoice's saga.
func await(t *testing.T, pool *pgxpool.Pool, invoice string) (state string) {
	t.Helper()
	eventually(t, "the saga of "+invoice, func() bool {
		_ = pool.QueryRow(t.Context(), "SELECT state FROM ebb.sagas WHERE aggregate_type = 'invoice' AND aggregate_id = $1", invoice).Scan(&state)
		return state == "COMPLETED" || state == "COMPENSATED"
	})
	return state
}

// ebb is a running `ebb infra` and what works on it.
type ebb struct {
	t    *testing.T
	bin  string
	data string
	cfg  handler.Config
}

// startEbb builds the binary and runs its infrastructure in a folder of its own.
func startEbb(t *testing.T) *ebb {
	// Not t.TempDir: the account that runs the embedded PostgreSQL has to get there.
	dir, err := os.MkdirTemp("", "ebb-example-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := &ebb{t: t, bin: os.Getenv("EBB_TEST_BINARY"), data: filepath.Join(dir, "data")}
	if e.bin == "" {
		e.bin = filepath.Join(dir, "ebb")
		build := exec.Command("go", "build", "-o", e.bin, "./cmd/ebb")
		build.Dir = ".."
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	e.start("infra")
	t.Setenv("EBB_DATA", e.data)
	for _, name := range []string{"EBB_DSN", "EBB_BROKERS", "EBB_REGISTRY_URL"} {
		t.Setenv(name, "")
	}
	eventually(t, "ebb infra", func() bool {
		e.cfg, err = handler.FromEnv()
		return err == nil && e.cfg.DSN != ""
	})
	e.cfg.Scan = 200 * time.Millisecond
	return e
}

// command is one of the binary's, on this pipeline.
func (e *ebb) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.bin, append(args, "--data", e.data)...)
	cmd.Env = append(os.Environ(), "EBB_DATA="+e.data)
	return cmd
}

// run waits for a short command.
func (e *ebb) run(args ...string) {
	e.t.Helper()
	out, err := e.command(args...).CombinedOutput()
	require.NoError(e.t, err, "ebb %s: %s", strings.Join(args, " "), out)
}

// start runs a role until the test ends.
func (e *ebb) start(args ...string) {
	e.t.Helper()
	cmd := e.command(args...)
	log, err := os.CreateTemp(e.t.TempDir(), "log")
	require.NoError(e.t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(e.t, cmd.Start())
	e.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && e.t.Failed() {
			e.t.Logf("ebb %s:\n%s", strings.Join(args, " "), text)
		}
	})
}

// destination runs one in this process until the test ends, and returns when it is ready.
func (e *ebb) destination(d handler.Destination) {
	e.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cfg, addr, done := e.cfg, make(chan string, 1), make(chan error, 1)
	cfg.HTTP, cfg.Listening = "127.0.0.1:0", func(a string) { addr <- a }
	go func() { done <- handler.Run(ctx, cfg, d) }()
	e.t.Cleanup(func() {
		stop()
		require.NoError(e.t, <-done)
	})
	select {
	case a := <-addr:
		eventually(e.t, d.Name, func() bool {
			resp, err := http.Get("http://" + a + "/readyz")
			if err != nil {
				return false
			}
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	case err := <-done:
		done <- err
		require.NoError(e.t, err)
	}
}

// eventually waits for a condition; the limit only ends a test that hangs.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-limit.C:
			t.Fatal("waited in vain for " + what)
		case <-tick.C:
		}
	}
}
