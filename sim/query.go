package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	defaultPage = 1000
	maxPage     = 10_000
	mediaNDJSON = "application/x-ndjson"
)

// Filter selects rows of a ledger; empty conditions select all.
type Filter struct {
	Aggregate   string
	Destination string
	Direction   Direction
	Key         string
	Since       int64 // rows with a higher sequence number
	Limit       int   // 0: a page of 1000, or no limit when streamed
}

// query is the filter as URL parameters.
func (f Filter) query() url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("aggregate", f.Aggregate)
	set("destination", f.Destination)
	set("direction", string(f.Direction))
	set("key", f.Key)
	if f.Since > 0 {
		set("since", strconv.FormatInt(f.Since, 10))
	}
	if f.Limit > 0 {
		set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// filterOf reads a filter; unknown parameters are refused, since a mistyped
// condition would select everything.
func filterOf(q url.Values) (Filter, error) {
	var f Filter
	for name, values := range q {
		value, err := values[0], error(nil)
		switch name {
		case "aggregate":
			f.Aggregate = value
		case "destination":
			f.Destination = value
		case "direction":
			f.Direction = Direction(value)
		case "key":
			f.Key = value
		case "since":
			f.Since, err = strconv.ParseInt(value, 10, 64)
		case "limit":
			f.Limit, err = strconv.Atoi(value)
		default:
			return f, fmt.Errorf("parameter %q: want aggregate, destination, direction, key, since or limit", name)
		}
		if err != nil || f.Since < 0 || f.Limit < 0 {
			return f, fmt.Errorf("parameter %s: want a whole number from 0", name)
		}
	}
	return f, nil
}

func (f Filter) takes(aggregate, destination string, direction Direction, key string) bool {
	return (f.Aggregate == "" || f.Aggregate == aggregate) &&
		(f.Destination == "" || f.Destination == destination) &&
		(f.Direction == "" || f.Direction == direction) &&
		(f.Key == "" || f.Key == key)
}

// EachEffect calls yield for the selected effects in order until it returns false.
func (s *Sim) EachEffect(f Filter, yield func(Effect) bool) {
	s.mu.Lock()
	effects := s.book.effects // entries never change, so the slice may be read unlocked
	s.mu.Unlock()
	for i := min(f.Since, int64(len(effects))); i < int64(len(effects)); i++ {
		e := effects[i]
		if (f.takes(e.Aggregate, e.Destination, e.Direction, e.Key)) && !yield(e) {
			return
		}
	}
}

// EachCall calls yield for the selected calls in order of arrival until it
// returns false. The rows are read from the file, one at a time.
func (s *Sim) EachCall(f Filter, yield func(Call) bool) error {
	var bad error
	err := s.eachRawCall(f, func(_ int64, row json.RawMessage) bool {
		var c Call
		if bad = json.Unmarshal(row, &c); bad != nil {
			return false
		}
		return yield(c)
	})
	return errors.Join(err, bad)
}

// eachRawCall is EachCall with the rows as the JSON that they are kept in.
func (s *Sim) eachRawCall(f Filter, yield func(seq int64, row json.RawMessage) bool) error {
	for seq := f.Since + 1; ; seq++ {
		s.mu.Lock()
		if seq > int64(len(s.book.calls)) {
			s.mu.Unlock()
			return nil
		}
		ref := s.book.calls[seq-1]
		s.mu.Unlock()
		row, err := s.readCall(f, ref)
		if err != nil {
			return fmt.Errorf("sim: call %d: %w", seq, err)
		}
		if row != nil && !yield(seq, row) {
			return nil
		}
	}
}

// readCall returns the call with its reply put in, or nil if f does not take it.
func (s *Sim) readCall(f Filter, ref callRef) (json.RawMessage, error) {
	payload, err := s.log.Read(ref.call)
	if err != nil {
		return nil, err
	}
	var raw struct{ Call json.RawMessage }
	var head callHead
	if err := errors.Join(json.Unmarshal(payload, &raw), json.Unmarshal(raw.Call, &head)); err != nil {
		return nil, err
	}
	switch {
	case !f.takes(head.Aggregate, head.Destination, head.Direction, head.Key):
		return nil, nil
	case ref.done.IsZero():
		return raw.Call, nil
	}
	if payload, err = s.log.Read(ref.done); err != nil {
		return nil, err
	}
	var end struct {
		Done struct{ Reply json.RawMessage }
	}
	if err := json.Unmarshal(payload, &end); err != nil {
		return nil, err
	}
	row := append(bytes.TrimSuffix(raw.Call, []byte("}")), `,"reply":`...)
	return append(append(row, end.Done.Reply...), '}'), nil
}

// callPage and effectPage are pages of a ledger. Next is the since of the page
// that follows; it is absent on the last one.
type callPage struct {
	Calls []json.RawMessage `json:"calls"` // of Call
	Next  int64             `json:"next,omitempty"`
}

type effectPage struct {
	Effects []Effect `json:"effects"`
	Next    int64    `json:"next,omitempty"`
}

func (s *Sim) getEffects(w http.ResponseWriter, r *http.Request) {
	f, ok := readFilter(w, r)
	if !ok {
		return
	}
	if wantsStream(r) {
		st := newStream(w, f.Limit)
		s.EachEffect(f, func(e Effect) bool { return st.row(encode(e)) })
		st.end()
		return
	}
	page, limit := effectPage{Effects: []Effect{}}, pageSize(f)
	s.EachEffect(f, func(e Effect) bool {
		if len(page.Effects) == limit {
			page.Next = page.Effects[limit-1].Seq
			return false
		}
		page.Effects = append(page.Effects, e)
		return true
	})
	writeJSON(w, http.StatusOK, page)
}

func (s *Sim) getCalls(w http.ResponseWriter, r *http.Request) {
	f, ok := readFilter(w, r)
	if !ok {
		return
	}
	// Reset must not take the file away under the reader.
	s.flow.RLock()
	defer s.flow.RUnlock()
	if wantsStream(r) {
		st := newStream(w, f.Limit)
		if err := s.eachRawCall(f, func(_ int64, row json.RawMessage) bool { return st.row(row) }); err != nil {
			s.logger.Error("sim: read calls", "error", err)
			panic(http.ErrAbortHandler) // a stream that ends early must not look whole
		}
		st.end()
		return
	}
	page, limit, last := callPage{Calls: []json.RawMessage{}}, pageSize(f), int64(0)
	err := s.eachRawCall(f, func(seq int64, row json.RawMessage) bool {
		if len(page.Calls) == limit {
			page.Next = last
			return false
		}
		page.Calls, last = append(page.Calls, row), seq
		return true
	})
	if err != nil {
		writeProblem(w, http.StatusInternalServerError, "ledger_unavailable", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, page)
}

func readFilter(w http.ResponseWriter, r *http.Request) (Filter, bool) {
	f, err := filterOf(r.URL.Query())
	if err != nil {
		writeProblem(w, http.StatusBadRequest, "invalid_filter", err.Error())
	}
	return f, err == nil
}

func pageSize(f Filter) int {
	if f.Limit == 0 {
		return defaultPage
	}
	return min(f.Limit, maxPage)
}

func wantsStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), mediaNDJSON)
}

// stream writes one JSON value a line, as they come.
type stream struct {
	buf  *bufio.Writer
	left int // 0: no limit
}

func newStream(w http.ResponseWriter, limit int) *stream {
	w.Header().Set("Content-Type", mediaNDJSON)
	return &stream{buf: bufio.NewWriterSize(w, 1<<16), left: limit}
}

// row reports whether more rows are wanted.
func (s *stream) row(json []byte) bool {
	if _, err := s.buf.Write(append(json, '\n')); err != nil {
		return false
	}
	s.left--
	return s.left != 0
}

func (s *stream) end() { _ = s.buf.Flush() }
