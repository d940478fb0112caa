package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ebbline/ebb/bench/peer"
	"github.com/ebbline/ebb/producer/events"
	"github.com/ebbline/ebb/producer/order"
	"github.com/ebbline/ebb/producer/postgres"
)

// amount of every order.
const amount = "49.90"

// customer names the customer of the n-th order. Every tenth is refused, at one destination after the other.
func customer(n int64) string {
	if n%10 != 0 {
		return fmt.Sprintf("customer-%d", n)
	}
	at := []string{"inventory", "fraudCheck", "shipping", "billing"}[n/10%4]
	return fmt.Sprintf("customer-%d-refuse-%s", n, at)
}

// shop creates orders as the order service does: order and event in one transaction. The order API in front of it is left out, since
// its HTTP is no part of what is compared.
type shop struct {
	store *postgres.Store
	flow  *flow
	next  atomic.Int64
}

func newShop(e *ebb, open int) (*shop, error) {
	store, err := postgres.New(postgres.Config{Pool: e.db.pool, Encoder: events.New(e.codec)})
	if err != nil {
		return nil, err
	}
	return &shop{store: store, flow: newFlow(open)}, nil
}

func (s *shop) create(ctx context.Context) error {
	value, err := order.ParseAmount(amount, 2)
	if err != nil {
		return err
	}
	n := order.New{CustomerID: customer(s.next.Add(1)), Amount: value, Currency: "USD", ShippingType: order.Domestic}
	_, err = s.store.Create(context.WithoutCancel(ctx), n, order.Request{})
	return err
}

// closed keeps as many orders open as there are places, until ctx ends.
func (s *shop) closed(ctx context.Context, clients int) error {
	var g errgroup.Group
	for range clients {
		g.Go(func() error {
			for s.flow.enter(ctx) {
				if err := s.create(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// paced creates orders at a rate, whether or not earlier ones have ended, for some seconds.
func (s *shop) paced(ctx context.Context, clients int, perSecond, seconds float64) error {
	due := make(chan struct{}, int(perSecond*seconds)+1)
	var g errgroup.Group
	for range clients {
		g.Go(func() error {
			for range due {
				s.flow.begun.Add(1)
				if err := s.create(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	sent, started := 0, time.Now()
	for elapsed := 0.0; elapsed < seconds && ctx.Err() == nil; elapsed = time.Since(started).Seconds() {
		for ; sent < int(elapsed*perSecond); sent++ {
			due <- struct{}{}
		}
		<-tick.C
	}
	close(due)
	return g.Wait()
}

// plainOrders is the plain loop's run: as many workers as given, each with one order at a time.
func plainOrders(ctx context.Context, steps *peer.Steps, workers int) error {
	var next atomic.Int64
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			for ctx.Err() == nil {
				o := peer.Order{CustomerID: customer(next.Add(1)), Amount: amount}
				if err := steps.Run(context.WithoutCancel(ctx), o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
