package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	shutdownGrace   = 2 * time.Second
	readHeaderLimit = 10 * time.Second
	idleLimit       = 2 * time.Minute
	reopenPause     = 50 * time.Millisecond
)

// Serve answers on ln until ctx ends, then lets calls in flight finish for a
// short grace. It takes ln over. It returns nil after an orderly end.
func (s *Sim) Serve(ctx context.Context, ln net.Listener) error {
	return s.serve(ctx, ln)
}

// ServeDestination is Serve for a listener that belongs to one destination, so
// that [RefuseConnection] can be had for it alone.
func (s *Sim) ServeDestination(ctx context.Context, destination string, ln net.Listener) error {
	if !isDestination(destination) {
		return errors.Join(fmt.Errorf("sim: destination %q: want one of %v", destination, Destinations()), ln.Close())
	}
	d := newDoor(s, destination, ln)
	s.doors.add(d)
	defer s.doors.remove(d)
	s.watchDoors()
	return s.serve(ctx, d)
}

func (s *Sim) serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: readHeaderLimit, IdleTimeout: idleLimit,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("sim: serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // hung calls are what faults are for
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// doors are the listeners of single destinations.
type doors struct {
	mu    sync.Mutex
	all   map[*door]struct{}
	timer *time.Timer
}

func (d *doors) add(one *door) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[*door]struct{}{}
	}
	d.all[one] = struct{}{}
}

func (d *doors) remove(one *door) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, one)
}

func (d *doors) has(destination string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for one := range d.all {
		if one.destination == destination {
			return true
		}
	}
	return false
}

func (d *doors) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	for one := range d.all {
		_ = one.Close()
	}
}

// watchDoors brings each destination's listener to the state that the script
// wants, now and again when the next fault ends by its time.
func (s *Sim) watchDoors() {
	s.doors.mu.Lock()
	defer s.doors.mu.Unlock()
	if s.closed.Load() {
		return
	}
	for d := range s.doors.all {
		d.obey(s.script.refusing(d.destination))
	}
	if s.doors.timer != nil {
		s.doors.timer.Stop()
	}
	if end, ok := s.script.nextEnd(); ok {
		s.doors.timer = time.AfterFunc(max(end.Sub(s.cfg.Now()), time.Millisecond), s.watchDoors)
	}
}

// door is a listener that faults can close, or make reset its connections.
// Its states are open, shut (listening socket closed, Accept waits) and closed.
type door struct {
	sim         *Sim
	destination string
	addr        net.Addr
	done        chan struct{}
	once        sync.Once

	mu      sync.Mutex
	inner   net.Listener // nil while shut
	opened  chan struct{}
	shut    bool
	refused int // serial of the fault for which connections were cut
	conns   map[*doorConn]struct{}
}

func newDoor(s *Sim, destination string, ln net.Listener) *door {
	return &door{
		sim: s, destination: destination, addr: ln.Addr(), done: make(chan struct{}),
		inner: ln, opened: make(chan struct{}), conns: map[*doorConn]struct{}{},
	}
}

func (d *door) Addr() net.Addr { return d.addr }

func (d *door) Close() error {
	d.once.Do(func() { close(d.done) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inner == nil {
		return nil
	}
	err := d.inner.Close()
	d.inner = nil
	return err
}

// obey changes the state for the fault that is live now, or for none.
func (d *door) obey(f *scripted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	shut := f != nil && f.Mode == RefuseByClosing
	if f == nil {
		d.refused = 0
	} else if d.refused != f.serial {
		// Connections made before would go on past the fault.
		d.refused = f.serial
		for c := range d.conns {
			_ = c.reset()
		}
	}
	switch {
	case shut && !d.shut && d.inner != nil:
		_ = d.inner.Close()
		d.inner = nil
	case !shut && d.shut:
		close(d.opened)
		d.opened = make(chan struct{})
	}
	d.shut = shut
}

// Accept waits while the door is shut, and resets connections that a fault refuses.
func (d *door) Accept() (net.Conn, error) {
	for {
		inner, err := d.listener()
		if err != nil {
			return nil, err
		}
		c, err := inner.Accept()
		if err != nil {
			if d.isShut() {
				continue
			}
			return nil, err
		}
		conn := &doorConn{Conn: c, door: d}
		if d.sim.script.pickConnection(d.destination) != nil {
			_ = conn.reset()
			continue
		}
		d.mu.Lock()
		d.conns[conn] = struct{}{}
		d.mu.Unlock()
		return conn, nil
	}
}

// listener returns the open socket, opening it again on the same address once
// the fault has ended.
func (d *door) listener() (net.Listener, error) {
	for {
		d.mu.Lock()
		inner, shut, opened := d.inner, d.shut, d.opened
		d.mu.Unlock()
		switch {
		case d.isDone():
			return nil, net.ErrClosed
		case inner != nil:
			return inner, nil
		case shut:
			select {
			case <-opened:
			case <-d.done:
			}
		default:
			d.reopen()
		}
	}
}

func (d *door) reopen() {
	ln, err := net.Listen(d.addr.Network(), d.addr.String())
	if err != nil {
		d.sim.logger.Warn("sim: cannot listen again, trying on", "address", d.addr.String(), "error", err)
		select {
		case <-time.After(reopenPause):
		case <-d.done:
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut || d.isDone() {
		_ = ln.Close()
		return
	}
	d.inner = ln
}

func (d *door) isDone() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

func (d *door) isShut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inner == nil && !d.isDone()
}

// doorConn is a connection that its door can reset.
type doorConn struct {
	net.Conn
	door *door
}

func (c *doorConn) Close() error {
	c.door.mu.Lock()
	delete(c.door.conns, c)
	c.door.mu.Unlock()
	return c.Conn.Close()
}

// SetLinger makes a later Close reset the connection.
func (c *doorConn) SetLinger(seconds int) error {
	if l, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return l.SetLinger(seconds)
	}
	return nil
}

// reset cuts the connection without taking the door's lock.
func (c *doorConn) reset() error {
	_ = c.SetLinger(0)
	return c.Conn.Close()
}
