// Command crm is the destination crm: it sends CRM_URL/items what happened, and takes it back if the saga is unwound.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ebbline/ebb/consumers/handler"
)

// system is the external one.
type system struct{ url string }

// Prepare makes the bytes of the request. It asks nobody; every attempt gets these bytes. They are kept: no credentials.
func (system) Prepare(_ context.Context, s handler.Step) (handler.Request, error) {
	var event map[string]json.RawMessage // numbers keep every digit
	if err := json.Unmarshal(s.Event, &event); err != nil {
		return handler.Request{}, handler.Park("the event cannot be read: " + err.Error())
	}
	body, err := json.Marshal(map[string]any{"event": s.EventType, "about": s.AggregateID, "data": event})
	return handler.Request{Body: body}, err
}

// Send makes one attempt. What undoing takes is in the result: the item's id.
func (c system) Send(ctx context.Context, r handler.Request) (handler.Result, error) {
	out, err := c.call(ctx, r, http.MethodPost, "/items", r.Body)
	if err != nil {
		return handler.Result{}, err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(out.Reply, &made); err != nil || made.ID == "" {
		return handler.Result{}, handler.Unknown(errors.New("the reply has no id"))
	}
	out.Undo = []byte(made.ID)
	return out, nil
}

// Undo gets the bytes that Send has put aside.
func (c system) Undo(ctx context.Context, r handler.Request) (handler.Result, error) {
	return c.call(ctx, r, http.MethodDelete, "/items/"+url.PathEscape(string(r.Body)), nil)
}

// call gives statuses the meaning that they have for destination files; see docs/reference/go-destinations.md for the errors.
func (c system) call(ctx context.Context, r handler.Request, method, path string, body []byte) (handler.Result, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return handler.Result{}, handler.Misconfigured(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return handler.Call(http.DefaultClient, r, req)
}

func destination(url string) handler.Destination {
	return handler.Destination{
		Name:    "crm",
		Handler: system{url},
		On:      []string{"OrderCreated"},
		After:   []string{"billing", "shipping"},
		Version: "1", // change it with what is sent
		// Idempotent says that a repeated key does nothing twice. Without it, a request whose reply was lost waits for a person.
		Idempotency: handler.Idempotent,
		Timeout:     5 * time.Second,
	}
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := handler.FromEnv()
	if err != nil {
		return err
	}
	cfg.Logger = slog.Default()
	return handler.Run(ctx, cfg, destination(os.Getenv("CRM_URL")))
}
