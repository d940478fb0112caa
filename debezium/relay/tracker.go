package relay

import (
	"sync"
	"time"

	"github.com/jackc/pglogrepl"
)

// tracker knows up to which position everything is in Kafka. Transactions enter in WAL order; their records are
// acknowledged in any order. The position moves over a transaction only when all of its records, and all transactions
// before it, are acknowledged.
//
// It lives as long as the relay: a reconnect does not forget what is still on its way to Kafka.
type tracker struct {
	mu      sync.Mutex
	queue   []*transaction // in WAL order
	acked   pglogrepl.LSN
	records int // not acknowledged yet
}

// transaction is one entry of the queue. Its fields belong to the tracker.
type transaction struct {
	end     pglogrepl.LSN // 0 until it is committed
	pending int           // records not acknowledged yet
	ended   bool          // no more records will be added
	opened  time.Time
}

// start sets the position to begin from. It never moves back.
func (t *tracker) start(at pglogrepl.LSN) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.acked = max(t.acked, at)
}

// open begins a transaction.
func (t *tracker) open(now time.Time) *transaction {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx := &transaction{opened: now}
	t.queue = append(t.queue, tx)
	return tx
}

// add counts a record of the transaction that is on its way.
func (t *tracker) add(tx *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.pending++
	t.records++
}

// ack counts a record that Kafka has acknowledged.
func (t *tracker) ack(tx *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.pending--
	t.records--
	if tx.pending == 0 && tx.ended {
		t.advance()
	}
}

// commit ends a transaction at a position.
func (t *tracker) commit(tx *transaction, end pglogrepl.LSN) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.end, tx.ended = end, true
	t.advance()
}

// abandon ends a transaction whose commit never arrived. It moves no position: the server will send it again.
func (t *tracker) abandon(tx *transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tx.ended = true
	t.advance()
}

// idle says that the server has sent everything up to a position. It counts like a transaction without records.
func (t *tracker) idle(end pglogrepl.LSN, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.acked = max(t.acked, end)
		return
	}
	if last := t.queue[len(t.queue)-1]; last.ended && last.end != 0 {
		// What follows a committed transaction without rows of ours is done when the transaction is.
		last.end = max(last.end, end)
		return
	}
	t.queue = append(t.queue, &transaction{end: end, ended: true, opened: now})
}

// advance drops finished transactions from the front.
func (t *tracker) advance() {
	n := 0
	for n < len(t.queue) && t.queue[n].ended && t.queue[n].pending == 0 {
		t.acked = max(t.acked, t.queue[n].end)
		t.queue[n] = nil
		n++
	}
	t.queue = t.queue[n:]
}

// position gives the end of the WAL that is wholly in Kafka.
func (t *tracker) position() pglogrepl.LSN {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acked
}

// waiting gives the number of records on their way and since when the oldest transaction waits (zero: none).
func (t *tracker) waiting() (records int, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) > 0 {
		since = t.queue[0].opened
	}
	return t.records, since
}
