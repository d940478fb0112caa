// Command ebb is every role of Ebb, and `ebb up`, which runs them all in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/internal/postgresrun"
)

type cli struct {
	LogLevel slog.Level `help:"Least level to log: debug, info, warn or error." default:"info" env:"EBB_LOG_LEVEL"`
	LogJSON  bool       `help:"Log as JSON lines." env:"EBB_LOG_JSON"`
	JSON     bool       `help:"Print JSON: one document, or one line per item of a list; errors too." name:"json" env:"EBB_JSON"`

	Up          upCmd          `cmd:"" group:"Roles" help:"Run the whole pipeline in this process: database, broker, registry, relay and every role."`
	Infra       infraCmd       `cmd:"" group:"Roles" help:"Run database, broker and registry only, for roles in processes of their own."`
	Producer    producerCmd    `cmd:"" group:"Roles" help:"Run the order service."`
	Consumer    consumerCmd    `cmd:"" group:"Roles" help:"Run the consumer of one destination."`
	Compensator compensatorCmd `cmd:"" group:"Roles" help:"Run the compensator."`
	Relay       relayCmd       `cmd:"" group:"Roles" help:"Stream the outboxes from PostgreSQL to Kafka."`
	Sim         simCmd         `cmd:"" group:"Roles" help:"Run the simulated destinations; their faults, ledgers and load."`

	Migrate migrateCmd `cmd:"" group:"Set-up" help:"Bring the database to the newest version, with publication and slot."`
	Topics  topicsCmd  `cmd:"" group:"Set-up" help:"Topics in Kafka."`
	Schemas schemasCmd `cmd:"" group:"Set-up" help:"Schemas in the registry."`
	Config  configCmd  `cmd:"" group:"Set-up" help:"Destination files."`

	Order       orderCmd       `cmd:"" group:"Operation" help:"Create orders, look at them and move them, through the order API."`
	Saga        sagaCmd        `cmd:"" group:"Operation" help:"Look at sagas and move those that wait for an operator."`
	Dlq         dlqCmd         `cmd:"" group:"Operation" help:"Records that could not be read."`
	Destination destinationCmd `cmd:"" group:"Operation" help:"Destinations: what they have to do, and new ones."`
	Completion  completionCmd  `cmd:"" group:"Operation" help:"Print the completion script of a shell."`
	Version     versionCmd     `cmd:"" group:"Operation" help:"Say which version this is."`
}

// env is what commands get beside their flags.
type env struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the command
	log    *slog.Logger
	stdout io.Writer
	stderr io.Writer
	json   bool              // print JSON
	model  *kong.Application // every command and flag
}

func main() {
	postgresrun.MaybeSupervise()
	time.Local = time.UTC // what logs, answers and pages say does not depend on where the machine is
	if os.Getenv("GOGC") == "" {
		// Much is allocated for a short time, and little is kept: collecting at twice the live heap would be most of the garbage
		// collector's work for nothing.
		debug.SetGCPercent(400)
	}
	ctx, cancel := lifecycle.Signals(context.Background())
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(status)
}

// run parses the command line, runs the command and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	exited := -1
	parser, err := newParser(&c, stdout, stderr, func(status int) { exited = status })
	if err != nil {
		fmt.Fprintln(stderr, "ebb:", err)
		return exitUsage
	}
	if err := applyConfigFile(parser, args); err != nil {
		fmt.Fprintln(stderr, "ebb:", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // help was asked for and printed
		return exited
	}
	e := &env{ctx: ctx, log: newLogger(c, stderr), stdout: stdout, stderr: stderr, json: c.JSON || slices.Contains(args, "--json"), model: parser.Model}
	if err != nil {
		return e.fail(&usageError{fmt.Errorf("%w; see `%s --help`", err, nearest(err))})
	}
	if err := command.Run(e); err != nil {
		return e.fail(err)
	}
	return exitOK
}

func newParser(c *cli, stdout, stderr io.Writer, exit func(status int)) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("ebb"),
		kong.Description("Orders out to external systems, and back in reverse order when one of them refuses."),
		kong.Writers(stdout, stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Vars{"destinations": "consumers/destinations"},
	)
}

// nearest is the command whose help is nearest to the place of a parse error.
func nearest(err error) string {
	var bad *kong.ParseError
	if !errors.As(err, &bad) || bad.Context == nil || bad.Context.Selected() == nil {
		return "ebb"
	}
	return bad.Context.Selected().FullPath()
}

func newLogger(c cli, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
