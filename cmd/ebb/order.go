package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/ebbline/ebb/cmd/ebb/internal/orderapi"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

type orderCmd struct {
	Create orderCreateCmd `cmd:"" help:"Create an order."`
	List   orderListCmd   `cmd:"" help:"List orders, newest first."`
	Show   orderShowCmd   `cmd:"" help:"Show one order with its sagas and steps."`
	Status orderStatusCmd `cmd:"" help:"Print an order's status, or move it to SHIPPED or DELIVERED."`
	Cancel orderCancelCmd `cmd:"" help:"Cancel an order: what was done for it is undone."`
}

// waiting lets a command end when the order's saga has.
type waiting struct {
	Wait    bool          `help:"Wait until nothing moves the order any more: its saga has ended, or waits for an operator."`
	Timeout time.Duration `help:"Longest wait." default:"60s"`
}

// keyed makes a change repeatable.
type keyed struct {
	Key string `help:"Idempotency-Key: the same key with the same content changes nothing twice. By default a new one." placeholder:"TEXT"`
}

func (k *keyed) fill() {
	if k.Key == "" {
		k.Key = uuid.NewString()
	}
}

// explain says how to find out what became of a change without an answer.
func (k *keyed) explain(err error) error {
	var gone *orderapi.UnreachableError
	var bad *orderapi.Error
	if errors.As(err, &gone) && gone.Maybe || errors.As(err, &bad) && bad.Status == http.StatusServiceUnavailable {
		return fmt.Errorf("%w\nwhether it was stored is not known: repeat the command with --key %s to find out", err, k.Key)
	}
	return err
}

// advise names the command that shows why an order was not found or would not move.
func advise(err error, id int64) error {
	var bad *orderapi.Error
	switch {
	case !errors.As(err, &bad):
		return err
	case bad.Status == http.StatusNotFound:
		return fmt.Errorf("%w; see `ebb order list`", err)
	case bad.Status == http.StatusConflict:
		return fmt.Errorf("%w; see `ebb order show %d`", err, id)
	}
	return err
}

type orderCreateCmd struct {
	orderPlace
	waiting
	keyed
	Customer string `help:"Who orders." required:"" placeholder:"ID"`
	Amount   string `help:"What the order is worth, such as 99.90; digit for digit." required:"" placeholder:"DECIMAL"`
	Currency string `help:"ISO 4217 code." default:"USD"`
	Shipping string `help:"domestic or international." default:"domestic"`
}

// Help has examples.
func (orderCreateCmd) Help() string {
	return `Examples:

  ebb order create --customer c-1 --amount 99.90
  ebb order create --customer c-1 --amount 1200 --currency JPY --shipping international --wait`
}

func (c *orderCreateCmd) Run(e *env) error {
	api, err := e.orders(c.orderPlace)
	if err != nil {
		return err
	}
	c.fill()
	o, err := api.Create(e.ctx, c.Key, orderapi.New{
		CustomerID: c.Customer, TotalAmount: orderapi.Money(c.Amount), Currency: c.Currency, ShippingType: c.Shipping,
	})
	if err != nil {
		return c.explain(err)
	}
	return c.finish(e, api, o)
}

type orderListCmd struct {
	orderPlace
	Status    string `help:"Only orders of this status." placeholder:"STATUS"`
	Customer  string `help:"Only orders of this customer." placeholder:"ID"`
	Attention bool   `help:"Only orders that an operator has to look at."`
	Before    int64  `help:"Only orders below this id: the last one of the page before." placeholder:"ID"`
	Limit     int    `help:"Page size, 1 to 500." default:"50"`
}

// Help has examples.
func (orderListCmd) Help() string {
	return `Examples:

  ebb order list --status PENDING
  ebb order list --json --limit 500 | jq -r .totalAmount`
}

func (c *orderListCmd) Run(e *env) error {
	api, err := e.orders(c.orderPlace)
	if err != nil {
		return err
	}
	page, err := api.List(e.ctx, orderapi.Filter{
		Status: c.Status, CustomerID: c.Customer, Attention: c.Attention, Before: c.Before, Limit: c.Limit,
	})
	if err != nil {
		return err
	}
	return list(e, page.Orders, func(w io.Writer, orders []orderapi.Order) {
		rows := make([][]string, len(orders))
		for i, o := range orders {
			attention := "-"
			if o.Attention != nil {
				attention = *o.Attention
			}
			rows[i] = []string{strconv.FormatInt(o.ID, 10), o.Status, string(o.TotalAmount), o.Currency, o.ShippingType, o.CustomerID, stamp(o.CreatedAt), attention}
		}
		table(w, "orders", []string{"ID", "STATUS", "AMOUNT", "CURRENCY", "SHIPPING", "CUSTOMER", "CREATED", "ATTENTION"}, rows)
		if page.NextBefore != nil {
			fmt.Fprintf(w, "more: --before %d\n", *page.NextBefore)
		}
	})
}

type orderShowCmd struct {
	orderPlace
	waiting
	ID int64 `arg:"" help:"Id of the order."`
}

// Help has examples.
func (orderShowCmd) Help() string {
	return `Examples:

  ebb order show 21
  ebb order show 21 --wait --timeout 30s --json | jq -r .status`
}

func (c *orderShowCmd) Run(e *env) error {
	api, err := e.orders(c.orderPlace)
	if err != nil {
		return err
	}
	o, err := api.Get(e.ctx, c.ID)
	if err != nil {
		return advise(err, c.ID)
	}
	return c.finish(e, api, o)
}

type orderStatusCmd struct {
	orderPlace
	keyed
	ID     int64  `arg:"" help:"Id of the order."`
	Status string `arg:"" help:"SHIPPED or DELIVERED; without it the status is printed." optional:""`
}

// Help has examples.
func (orderStatusCmd) Help() string {
	return `Examples:

  ebb order status 21
  ebb order status 21 SHIPPED`
}

func (c *orderStatusCmd) Run(e *env) error {
	api, err := e.orders(c.orderPlace)
	if err != nil {
		return err
	}
	var o orderapi.Order
	if c.Status == "" {
		o, err = api.Get(e.ctx, c.ID)
	} else {
		c.fill()
		o, err = api.SetStatus(e.ctx, c.Key, c.ID, c.Status)
	}
	if err != nil {
		return advise(c.explain(err), c.ID)
	}
	return one(e, o, func(w io.Writer, o orderapi.Order) { fmt.Fprintln(w, plain(o.Status)) })
}

type orderCancelCmd struct {
	orderPlace
	waiting
	keyed
	ID     int64  `arg:"" help:"Id of the order."`
	Reason string `help:"Why; it is kept with the cancel." placeholder:"TEXT"`
}

// Help has examples.
func (orderCancelCmd) Help() string {
	return `Examples:

  ebb order cancel 21 --reason "changed my mind"
  ebb order cancel 21 --wait`
}

func (c *orderCancelCmd) Run(e *env) error {
	api, err := e.orders(c.orderPlace)
	if err != nil {
		return err
	}
	c.fill()
	o, err := api.Cancel(e.ctx, c.Key, c.ID, c.Reason)
	if err != nil {
		return advise(c.explain(err), c.ID)
	}
	return c.finish(e, api, o)
}

// orders makes a client of the order API that is given, or that runs nearby.
func (e *env) orders(p orderPlace) (*orderapi.Client, error) {
	return e.ordersBy(p, &http.Client{Timeout: time.Minute})
}

func (e *env) ordersBy(p orderPlace, by *http.Client) (*orderapi.Client, error) {
	base := p.URL
	if base == "" {
		r, err := p.find()
		if err != nil {
			return nil, err
		}
		if base = r.HTTP; base == "" {
			return nil, p.missing("--url", "EBB_URL")
		}
		if r.ended() {
			return nil, &unreachableError{fmt.Errorf("the order API does not run%s", r.hint())}
		}
	}
	client, err := orderapi.NewClient(base, by)
	if err != nil {
		return nil, &usageError{err}
	}
	return client, nil
}

// finish waits for the order if it should, and prints it.
func (w waiting) finish(e *env, api *orderapi.Client, o orderapi.Order) error {
	var err error
	if w.Wait {
		if o, err = w.await(e.ctx, api, o); err != nil {
			return err
		}
	}
	return one(e, o, printOrder)
}

func (w waiting) await(ctx context.Context, api *orderapi.Client, o orderapi.Order) (orderapi.Order, error) {
	deadline := time.NewTimer(w.Timeout)
	defer deadline.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		next, err := api.Get(ctx, o.ID)
		if err != nil {
			return o, err
		}
		if o = next; o.Settled() && endShown(o) {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, ctx.Err()
		case <-deadline.C:
			return o, fmt.Errorf("order %d is still %s after %s; see `ebb saga show %d`", o.ID, o.Status, w.Timeout, o.ID)
		case <-look.C:
		}
	}
}

// endShown tells whether the order's saga is shown at its end too: what Kafka has told of a commit can be known a moment before the
// commit can be seen in the database.
func endShown(o orderapi.Order) bool {
	var sagas []journal.SagaView
	if o.Attention != nil || o.SagasUnavailable || json.Unmarshal(o.Sagas, &sagas) != nil {
		return true
	}
	for _, s := range sagas {
		if state, err := saga.ParseState(s.State); s.ID == o.CreatedEvent && err == nil && state.Open() {
			return false
		}
	}
	return true
}

func printOrder(w io.Writer, o orderapi.Order) {
	fmt.Fprintf(w, "order %d  %s  %s %s  %s, customer %s\n", o.ID, plain(o.Status), plain(string(o.TotalAmount)), plain(o.Currency),
		plain(o.ShippingType), plain(o.CustomerID))
	fmt.Fprintf(w, "version %d, created %s, changed %s\n", o.Version, stamp(o.CreatedAt), stamp(o.UpdatedAt))
	if o.Attention != nil {
		fmt.Fprintf(w, "attention: %s\n", plain(*o.Attention))
	}
	var sagas []journal.SagaView
	switch {
	case o.SagasUnavailable:
		fmt.Fprintln(w, "sagas: the journal does not answer")
	case len(o.Sagas) > 0 && json.Unmarshal(o.Sagas, &sagas) == nil:
		for _, s := range sagas {
			printSagaHead(w, s)
			for _, t := range s.Steps {
				printStepLine(w, t)
			}
		}
	}
}
