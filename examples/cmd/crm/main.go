// Command crm opens a deal in a CRM for every new order, and deletes it if the order is unwound.
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

type crm struct{ url string }

// deal is what the CRM is sent. Numbers are json.Number: they keep every digit.
type deal struct {
	Order json.Number `json:"order"`
	Value json.Number `json:"value"`
}

// Prepare makes the bytes of the request. It asks nobody; every attempt gets these bytes.
func (crm) Prepare(_ context.Context, s handler.Step) (handler.Request, error) {
	var order struct {
		OrderID     json.Number `json:"orderId"`
		TotalAmount json.Number `json:"totalAmount"`
	}
	if err := json.Unmarshal(s.Event, &order); err != nil {
		return handler.Request{}, handler.Park("the event cannot be read: " + err.Error())
	}
	body, err := json.Marshal(deal{order.OrderID, order.TotalAmount})
	return handler.Request{Body: body}, err
}

// Send makes one attempt. What undoing takes is in the result: the id of the deal.
func (c crm) Send(ctx context.Context, r handler.Request) (handler.Result, error) {
	out, err := c.call(ctx, r, http.MethodPost, "/deals", r.Body)
	if err != nil {
		return out, err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(out.Reply, &made); err != nil || made.ID == "" {
		return out, handler.Unknown(errors.New("the reply has no id"))
	}
	out.Undo = []byte(made.ID)
	return out, nil
}

// Undo gets the bytes that Send has put aside.
func (c crm) Undo(ctx context.Context, r handler.Request) (handler.Result, error) {
	return c.call(ctx, r, http.MethodDelete, "/deals/"+url.PathEscape(string(r.Body)), nil)
}

func (c crm) call(ctx context.Context, r handler.Request, method, path string, body []byte) (handler.Result, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return handler.Result{}, handler.Misconfigured(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return handler.Call(http.DefaultClient, r, req)
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
	return handler.Run(ctx, cfg, handler.Destination{
		Name: "crm", Handler: crm{os.Getenv("CRM_URL")}, On: []string{"OrderCreated"}, After: []string{"billing"},
		Idempotency: handler.Idempotent, Timeout: 5 * time.Second,
	})
}
