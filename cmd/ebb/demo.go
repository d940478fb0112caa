package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbline/ebb/internal/lifecycle"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
)

// demo creates orders through the API and tells how each ends. Its orders have client keys, so that another start goes on with the
// same orders and adds none.
type demo struct {
	orders int
	api    string
	sim    *sim.Client // nil without simulated destinations
	store  *journal.Store
	out    io.Writer
}

// errDemo says that an order did not end, or that the ledger does not agree.
var errDemo = errors.New("the demo did not end well")

// addDemo adds the demo to the group; with --exit its end is the end of the process.
func (c *upCmd) addDemo(e *env, g *lifecycle.Group, s *session, in *infra) {
	if c.Demo == 0 {
		return
	}
	d := &demo{orders: c.Demo, api: in.run.HTTP, store: s.store, out: e.stdout}
	if in.run.Sim != "" {
		d.sim = sim.NewClient(in.run.Sim, http.DefaultClient)
	}
	g.Add("demo", func(ctx context.Context) error {
		if err := d.run(ctx); err != nil || c.Exit {
			return err
		}
		fmt.Fprintf(e.stdout, "the API answers at %s until Ctrl-C\n", in.run.HTTP)
		<-ctx.Done()
		return nil
	})
}

func (d *demo) run(ctx context.Context) error {
	ids := make([]string, d.orders)
	for n := range d.orders {
		id, err := d.create(ctx, n+1)
		if err != nil {
			return fmt.Errorf("demo order %d: %w", n+1, err)
		}
		ids[n] = id
	}
	for n, id := range ids {
		v, err := d.await(ctx, id)
		if err != nil {
			return fmt.Errorf("demo order %d: %w", n+1, err)
		}
		fmt.Fprintln(d.out, line(id, v))
	}
	return d.lastLine(ctx)
}

// demoCustomers are refused at one destination each, every fifth order; the others as chance has it.
func demoCustomer(n int) string {
	refusing := []string{"inventory", "fraudCheck", "shipping", "billing"}
	if n%5 == 0 {
		return fmt.Sprintf("customer-%d-refuse-%s", n, refusing[(n/5-1)%len(refusing)])
	}
	return fmt.Sprintf("customer-%d", n)
}

func (d *demo) create(ctx context.Context, n int) (string, error) {
	shipping := "domestic"
	if n%3 == 0 {
		shipping = "international"
	}
	body, err := json.Marshal(map[string]any{
		"customerId": demoCustomer(n), "totalAmount": json.Number(fmt.Sprintf("%d.%02d", 10*n, n%100)), "currency": "USD", "shippingType": shipping,
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.api+"/api/orders", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", fmt.Sprintf("demo-%04d", n))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("the order API answered %d: %s", resp.StatusCode, strings.TrimSpace(string(reply)))
	}
	var created struct {
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(reply, &created); err != nil {
		return "", err
	}
	return strconv.FormatInt(created.ID, 10), nil
}

// await waits until the order's saga has ended or waits for an operator.
func (d *demo) await(ctx context.Context, id string) (journal.SagaView, error) {
	for {
		list, err := d.store.SagasOf(ctx, journal.Key{Type: schemas.AggregateOrder, ID: id})
		if err != nil {
			return journal.SagaView{}, err
		}
		for _, v := range list {
			if v.State == "COMPLETED" || v.State == "COMPENSATED" || v.Attention != "" {
				return v, nil
			}
		}
		select {
		case <-ctx.Done():
			return journal.SagaView{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// line is one order's end: final state, steps in the order of the plan, undo order, time.
func line(id string, v journal.SagaView) string {
	state := v.State
	if v.Attention != "" {
		state = "PARKED"
	}
	var steps []string
	var undone []journal.StepView
	for _, t := range v.Steps {
		if t.Direction == "undo" {
			if t.State == "SUCCEEDED" {
				undone = append(undone, t)
			}
			continue
		}
		steps = append(steps, t.Destination+" "+strings.ToLower(t.State))
	}
	slices.SortFunc(undone, func(x, y journal.StepView) int { return x.UpdatedAt.Compare(y.UpdatedAt) })
	undo := "-"
	if len(undone) > 0 {
		names := make([]string, len(undone))
		for i, t := range undone {
			names[i] = t.Destination
		}
		undo = strings.Join(names, ", ")
	}
	took := max(v.UpdatedAt.Sub(v.CreatedAt), 0)
	return fmt.Sprintf("order %-4s %-12s %s | undone: %s | %s", id, state, strings.Join(steps, ", "), undo, took.Round(time.Millisecond))
}

// lastLine sums up, and asks the simulated destinations' own ledger whether it agrees.
func (d *demo) lastLine(ctx context.Context) error {
	t, err := d.store.Totals(ctx)
	if err != nil {
		return err
	}
	ledger := "not simulated"
	if d.sim != nil {
		violations, err := d.checkLedger(ctx)
		if err != nil {
			return err
		}
		ledger = "consistent"
		if len(violations) > 0 {
			ledger = fmt.Sprintf("NOT consistent: %v", violations[0])
		}
	}
	fmt.Fprintf(d.out, "%d sagas: %d completed, %d compensated, %d parked, %d open; ledger %s\n",
		t.Sagas, t.Completed, t.Compensated, t.Parked, t.Open, ledger)
	if t.Open > 0 || strings.HasPrefix(ledger, "NOT") {
		return errDemo
	}
	return nil
}

// checkLedger holds the ledger against itself and against how the orders ended: a completed order has its effects, a compensated one
// has none left.
func (d *demo) checkLedger(ctx context.Context) ([]string, error) {
	effects, err := d.sim.Effects(ctx, sim.Filter{})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range sim.Check(effects) {
		out = append(out, fmt.Sprint(v))
	}
	for _, s := range sim.Summarize(effects) {
		list, err := d.store.SagasOf(ctx, journal.Key{Type: schemas.AggregateOrder, ID: s.Aggregate})
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			switch {
			case v.EventType != schemas.EventOrderCreated:
			case v.State == "COMPLETED" && !s.Live():
				out = append(out, fmt.Sprintf("order %s is completed without effects", s.Aggregate))
			case v.State == "COMPENSATED" && s.Live():
				out = append(out, fmt.Sprintf("order %s is compensated, but effects are left", s.Aggregate))
			}
		}
	}
	return out, nil
}
