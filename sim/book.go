package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbline/ebb/sim/internal/appendlog"
)

// keyID stands for (destination, key) and fingerprint for a request; both are
// hashes without pointers, so that millions of them cost the collector nothing.
type (
	keyID       [16]byte
	fingerprint [16]byte
)

func idOf(destination, key string) keyID {
	sum := sha256.Sum256([]byte(destination + "\x00" + key))
	return keyID(sum[:16])
}

func fingerprintOf(c *Call) fingerprint {
	h := sha256.New()
	h.Write([]byte(c.Method + "\x00" + c.Target + "\x00"))
	h.Write(c.Body)
	return fingerprint(h.Sum(nil)[:16])
}

// thing is a hold, shipment, charge … that can be undone once.
type thing struct {
	kind                        Kind
	aggregate, amount, currency string
	undone                      bool
}

// answerRef finds a remembered answer in the file.
type answerRef struct {
	span    appendlog.Span
	print   fingerprint
	at      int64 // Unix nanoseconds
	effect  int64 // sequence number, 0 for none
	refused bool
}

// callRef finds a call and its end in the file.
type callRef struct{ call, done appendlog.Span }

// book is the state that the ledger file adds up to. It is rebuilt from the
// file at start and changed only together with it.
type book struct {
	calls    []callRef
	effects  []Effect
	things   map[string]*thing
	answers  map[keyID]answerRef
	attempts map[keyID]int
	// marks are the destinations that an aggregate's customer wants refused.
	marks map[string]map[string]bool
}

func newBook() book {
	return book{
		things: map[string]*thing{}, answers: map[keyID]answerRef{},
		attempts: map[keyID]int{}, marks: map[string]map[string]bool{},
	}
}

// load takes one record of the file. It decodes no more than the state needs:
// headers and bodies are most of the file.
func (b *book) load(span appendlog.Span, payload []byte) error {
	var r struct {
		Call *callHead
		Done *doneHead
	}
	if err := json.Unmarshal(payload, &r); err != nil {
		return err
	}
	switch {
	case r.Call != nil:
		c := Call{Destination: r.Call.Destination, Direction: r.Call.Direction, Aggregate: r.Call.Aggregate, Key: r.Call.Key}
		if bytes.Contains(payload, []byte(markerPrefix)) {
			var whole record
			if err := json.Unmarshal(payload, &whole); err != nil {
				return err
			}
			c.Body = whole.Call.Body
		}
		b.arrive(&c)
		b.calls = append(b.calls, callRef{call: span})
	case r.Done != nil:
		if r.Done.Call < 1 || r.Done.Call > int64(len(b.calls)) {
			return fmt.Errorf("end of unknown call %d", r.Done.Call)
		}
		b.finish(span, r.Done.Call, r.Done.Effect, r.Done.Answer)
	default:
		return errors.New("neither a call nor the end of one")
	}
	return nil
}

// arrive counts a call that is about to get the next sequence number.
func (b *book) arrive(c *Call) {
	c.Seq = int64(len(b.calls)) + 1
	if c.Key != "" && c.Direction != Lookup {
		id := idOf(c.Destination, c.Key)
		b.attempts[id]++
		c.Attempt = b.attempts[id]
	}
	b.mark(c)
}

// mark remembers the markers in a call for the whole order: not every
// destination is told who the customer is.
func (b *book) mark(c *Call) {
	if !bytes.Contains(c.Body, []byte(markerPrefix)) && !strings.Contains(c.Aggregate, markerPrefix) {
		return
	}
	for _, d := range Destinations() {
		if bytes.Contains(c.Body, []byte(marker(d))) || strings.Contains(c.Aggregate, marker(d)) {
			if b.marks[c.Aggregate] == nil {
				b.marks[c.Aggregate] = map[string]bool{}
			}
			b.marks[c.Aggregate][d] = true
		}
	}
}

func (b *book) nextEffect() int64 { return int64(len(b.effects)) + 1 }

func (b *book) finish(span appendlog.Span, call int64, e *Effect, a *answerHead) {
	b.calls[call-1].done = span
	var effect int64
	if e != nil {
		effect = e.Seq
		b.apply(*e)
	}
	if a != nil {
		ref := answerRef{span: span, at: a.At.UnixNano(), effect: effect, refused: a.refused()}
		copy(ref.print[:], a.Fingerprint)
		b.answers[idOf(a.Destination, a.Key)] = ref
	}
}

func (b *book) apply(e Effect) {
	b.effects = append(b.effects, e)
	if e.Direction == Undo {
		if t := b.things[e.Thing]; t != nil {
			t.undone = true
		}
		return
	}
	b.things[e.Thing] = &thing{kind: e.Kind, aggregate: e.Aggregate, amount: e.Amount, currency: e.Currency}
}

func (r answerRef) time() time.Time { return time.Unix(0, r.at) }
