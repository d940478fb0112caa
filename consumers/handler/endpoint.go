package handler

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ebbline/ebb/consumers"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/journal/saga"
)

// prepareWithin bounds Prepare: aggregates are locked meanwhile.
const prepareWithin = time.Second

// maxUndo is what an undo request may have: the event that tells of the success carries it whole.
const maxUndo = 256 << 10

// maxReason bounds the text of an error that is kept.
const maxReason = 1000

// endpoint makes a Handler an Endpoint of package consumers.
type endpoint struct {
	dest   Destination
	hash   string
	margin time.Duration
	watch  *watch
	log    *slog.Logger
}

// outcome is how a method of the handler ended.
type outcome struct {
	request Request
	result  Result
	err     error
}

// start runs a method in a goroutine of its own: one that panics must not end the process, and one that hangs must not hold anything
// but its place.
func (e *endpoint) start(ctx context.Context, method, key string, call func(ctx context.Context) outcome) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		out := outcome{err: fmt.Errorf("%s ended its goroutine", method)}
		defer func() {
			if v := recover(); v != nil {
				out = outcome{err: &PanicError{v}}
				e.log.ErrorContext(ctx, "the handler panicked", "method", method, "key", key, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
			done <- out
		}()
		out = call(ctx)
	}()
	return done
}

// Prepare implements consumers.Endpoint.
func (e *endpoint) Prepare(ctx context.Context, c journal.Candidate) journal.Prepared {
	ctx, cancel := context.WithTimeout(ctx, prepareWithin)
	defer cancel()
	step := stepOf(c.Dest, c.Saga, c.Aggregate, c.EventType, c.EventBody, c.EventTime, c.TraceParent)
	step.Replies = make(map[string]Reply, len(c.Responses))
	for name, r := range c.Responses {
		step.Replies[name] = Reply(r)
	}
	key := saga.Key(c.Saga, c.Dest, saga.Do)
	done := e.start(ctx, "Prepare", key, func(ctx context.Context) (out outcome) {
		out.request, out.err = e.dest.Handler.Prepare(ctx, step)
		return out
	})
	select {
	case out := <-done:
		return prepared(out)
	case <-ctx.Done():
	}
	e.log.ErrorContext(ctx, "Prepare hangs; it must ask nobody", "key", key)
	return journal.Prepared{Class: saga.ClassParked, Reason: fmt.Sprintf("Prepare did not return within %s; it must ask nobody", prepareWithin)}
}

func prepared(out outcome) journal.Prepared {
	if out.err != nil {
		switch class, _ := classOf(out.err); class {
		case saga.ClassSkipped, saga.ClassRefused:
			return journal.Prepared{Class: class, Reason: reason(out.err)}
		}
		return journal.Prepared{Class: saga.ClassParked, Reason: "Prepare: " + reason(out.err)}
	}
	body := out.request.Body
	if len(body) > MaxRequest {
		return journal.Prepared{Class: saga.ClassParked, Reason: fmt.Sprintf("the request has %d bytes, the limit is %d", len(body), MaxRequest)}
	}
	return journal.Prepared{Content: append([]byte{}, body...)} // an empty request is one too
}

func stepOf(dest string, id saga.ID, of journal.Key, eventType string, event []byte, at time.Time, trace string) Step {
	return Step{
		EventID: id.String(), EventType: eventType, Destination: dest, AggregateType: of.Type, AggregateID: of.ID,
		Event: event, EventTime: at, TraceParent: trace,
	}
}

// Attempt implements consumers.Endpoint. It returns when the handler has, or at the end of this process's grace.
func (e *endpoint) Attempt(ctx context.Context, c consumers.Call) consumers.Ended {
	started := time.Now()
	if !started.Before(c.Deadline) {
		return consumers.Ended{Class: saga.ClassNotSent, Reason: "too late for this claim", HeldBack: true}
	}
	method, call := e.method(c)
	if call == nil {
		return consumers.Ended{Class: saga.ClassParked, Reason: "it was to be looked up, and this version of the handler has no Lookup"}
	}
	in, cancel := context.WithTimeout(ctx, e.dest.Timeout)
	defer cancel()
	request := requestOf(c)
	done := e.start(in, method, c.Key, func(ctx context.Context) (out outcome) {
		out.result, out.err = call(ctx, request)
		return out
	})
	out, returned := e.await(ctx, in, done, method, c.Key)
	if !returned {
		out = outcome{err: fmt.Errorf("%s did not return", method)}
	}
	end := e.ended(c, out)
	end.Exchange.Started, end.Exchange.Duration = started, time.Since(started)
	return end
}

// method is what this attempt calls.
func (e *endpoint) method(c consumers.Call) (string, func(context.Context, Request) (Result, error)) {
	switch {
	case c.Asking:
		if asks, ok := e.dest.Handler.(Lookuper); ok {
			return "Lookup", asks.Lookup
		}
		return "Lookup", nil
	case c.Dir == saga.Undo:
		return "Undo", e.dest.Handler.Undo
	}
	return "Send", e.dest.Handler.Send
}

func requestOf(c consumers.Call) Request {
	return Request{
		Body: append([]byte{}, c.Content...), Key: c.Key, Undoing: c.Dir == saga.Undo, Attempt: c.Attempt, MayHaveHappened: c.Maybe, Version: c.SpecVersion,
		Step: stepOf(c.Dest, c.Saga, c.Aggregate, c.EventType, c.EventBody, c.EventTime, c.TraceParent),
	}
}

// await waits for a handler; in is the context that it was given, within ctx. One that goes on when its lease runs out hangs: that is
// shown, and it keeps its place, since what it does may still happen. Its step goes on by the lease.
func (e *endpoint) await(ctx, in context.Context, done <-chan outcome, method, key string) (outcome, bool) {
	select {
	case out := <-done:
		return out, true
	case <-in.Done():
	}
	overdue := time.NewTimer(e.margin)
	defer overdue.Stop()
	select {
	case out := <-done:
		return out, true
	case <-overdue.C:
	}
	if ctx.Err() != nil {
		return outcome{}, false // the process stops, and has waited
	}
	hung := e.watch.hangs(time.Now())
	e.log.ErrorContext(ctx, "the handler hangs: it does not end with its context; its step goes on without it", "method", method, "key", key)
	select {
	case out := <-done:
		e.watch.returned(hung)
		return out, true
	case <-ctx.Done():
		return outcome{}, false
	}
}

// ended turns the end of a handler into that of an attempt.
func (e *endpoint) ended(c consumers.Call, out outcome) consumers.Ended {
	end := consumers.Ended{SpecHash: e.hash, Class: saga.ClassSucceeded}
	end.Exchange.Sent = true
	if out.err == nil {
		end.Exchange.Status = out.result.Status
		e.succeeded(c, out.result, &end)
		return end
	}
	class, after := classOf(out.err)
	end.Reason, end.RetryAfter = reason(out.err), after
	end.Class, end.Reason = classFor(c, class, end.Reason)
	switch end.Class {
	case saga.ClassNotSent, saga.ClassMisconfigured:
		end.Outage = true
		end.Exchange.Sent = class == saga.ClassMisconfigured
	case saga.ClassSkipped, saga.ClassParked:
		end.Exchange.Sent = false
	}
	end.Exchange.Err = end.Reason
	return end
}

// succeeded keeps reply and undo request. What is too large for the journal does not make the success undone.
func (e *endpoint) succeeded(c consumers.Call, r Result, end *consumers.Ended) {
	var notes []string
	if end.Exchange.Body = r.Reply; len(r.Reply) > MaxReply {
		end.Exchange.Body = nil
		notes = append(notes, fmt.Sprintf("the reply has %d bytes, the limit is %d: it was not kept", len(r.Reply), MaxReply))
	}
	if c.Dir == saga.Do {
		switch {
		case r.Undo == nil:
			end.Revert = saga.RevertNone
		case len(r.Undo) > maxUndo:
			end.Revert = saga.RevertBroken
			notes = append(notes, fmt.Sprintf("the undo request has %d bytes, the limit is %d: the step parks if its saga is unwound", len(r.Undo), maxUndo))
		default:
			end.Revert, end.Undo = saga.RevertPinned, append([]byte{}, r.Undo...)
		}
	}
	end.Exchange.Err = strings.Join(notes, "; ")
	if len(notes) > 0 {
		e.log.Warn("a success is not kept whole", "key", c.Key, "reason", end.Exchange.Err)
	}
}

// classFor is what a class means to this kind of attempt. Nothing that may have happened is given up for an error that does not fit.
func classFor(c consumers.Call, class saga.Class, why string) (saga.Class, string) {
	switch {
	case c.Asking:
		switch class {
		case saga.ClassRefused, saga.ClassNotFound, saga.ClassNotSent, saga.ClassMisconfigured, saga.ClassParked:
			return class, "lookup: " + why
		}
		return saga.ClassUnknown, "lookup: " + why
	case class == saga.ClassNotFound:
		return saga.ClassUnknown, "NotFound is for Lookup: " + why
	case c.Dir == saga.Undo && class == saga.ClassPending:
		return saga.ClassUnknown, "the undo is pending: " + why
	case c.Dir == saga.Undo && class == saga.ClassSkipped:
		return saga.ClassParked, "Skip is not for Undo, return an empty Result if there is nothing left to undo: " + why
	case c.Maybe && class == saga.ClassSkipped:
		return saga.ClassParked, "Skip, and an earlier attempt may have been processed: " + why
	}
	return class, why
}

// reason is the text of an error as it is kept.
func reason(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
