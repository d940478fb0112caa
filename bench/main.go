package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ebbline/ebb/bench/api"
	"github.com/ebbline/ebb/internal/postgresrun"
)

// flags are the command line.
type flags struct {
	JSON     string        `help:"Write the report to this file as well, as JSON." name:"json" placeholder:"FILE" type:"path"`
	Quick    bool          `help:"One short round of everything: proves that it works, measures nothing."`
	Profile  string        `help:"Profile Ebb in runs of their own, and keep CPU and allocation profiles in this folder." placeholder:"DIR" type:"path"`
	Only     []string      `help:"Parts to run: orders, one, twelve, profile." placeholder:"PART"`
	Rounds   int           `help:"Rounds of each comparison." default:"3"`
	Seconds  float64       `help:"Length of a window." default:"8"`
	InFlight int           `help:"Orders or records that are open at once at Ebb." default:"1000"`
	Clients  int           `help:"Connections that create orders for Ebb." default:"16"`
	Workers  int           `help:"Orders that the plain loop works at once." default:"96"`
	Latency  time.Duration `help:"Time that the API takes for an answer." default:"5ms"`
	Rate     float64       `help:"Orders per second of the run that latencies are taken from. Default: half of what Ebb did." placeholder:"N"`
	Data     string        `help:"Folder for the data of the run, on the disk to be measured; removed afterwards. Default: one in the system's folder for temporary files." placeholder:"DIR" type:"path"`
	Ebb      string        `help:"Use this ebb binary instead of building one." placeholder:"FILE" type:"path"`
}

var parts = []string{"orders", "one", "twelve", "profile"}

// apiEnv marks the re-executed binary as the API server; its value is the latency.
const apiEnv = "EBB_BENCH_API"

func main() {
	postgresrun.MaybeSupervise()
	os.Exit(program())
}

// program gives the exit code: 1 for a run that did not go well, 2 for flags that cannot be meant.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if latency := os.Getenv(apiEnv); latency != "" {
		return exitCode(serveAPI(ctx, latency), 1)
	}
	var f flags
	kong.Parse(&f, kong.Name("bench"), kong.Description("Ebb and plain loops, side by side on this machine."), kong.UsageOnError())
	if err := f.complete(); err != nil {
		return exitCode(err, 2)
	}
	return exitCode(run(ctx, f), 1)
}

func exitCode(err error, failed int) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return failed
}

// complete fills in what follows from other flags, and refuses what cannot be meant.
func (f *flags) complete() error {
	if f.Quick {
		f.Rounds, f.Seconds, f.InFlight = 1, min(f.Seconds, 1.5), min(f.InFlight, 200)
	}
	var problems []error
	for _, p := range f.Only {
		if !slices.Contains(parts, p) {
			problems = append(problems, fmt.Errorf("--only %s: the parts are %s", p, strings.Join(parts, ", ")))
		}
	}
	if f.Rounds < 1 || f.Seconds <= 0 || f.InFlight < 1 || f.Clients < 1 || f.Workers < 1 || f.Latency < 0 || f.Rate < 0 {
		problems = append(problems, errors.New("--rounds, --seconds, --in-flight, --clients and --workers must be above 0, --latency and --rate not below"))
	}
	if slices.Contains(f.Only, "profile") && f.Profile == "" {
		problems = append(problems, errors.New("--only profile needs --profile DIR"))
	}
	return errors.Join(problems...)
}

// wants tells whether a part is to run. The profile runs when its folder is given.
func (f *flags) wants(part string) bool {
	if part == "profile" && f.Profile == "" {
		return false
	}
	return len(f.Only) == 0 || slices.Contains(f.Only, part)
}

// serveAPI is the API server's process: it says its address on the first line, and ends with its standard input.
func serveAPI(ctx context.Context, latency string) error {
	d, err := time.ParseDuration(latency)
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + ln.Addr().String())
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // returns when the parent has ended
		stop()
	}()
	return api.New(d).Serve(ctx, ln)
}
