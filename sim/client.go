package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client speaks the simulator's own API, under /sim.
type Client struct {
	base string
	http *http.Client
}

// NewClient returns a client of the simulator at base, such as
// http://127.0.0.1:9090. A nil client means [http.DefaultClient].
func NewClient(base string, client *http.Client) *Client {
	if client == nil {
		client = http.DefaultClient
	}
	return &Client{base: strings.TrimRight(base, "/"), http: client}
}

// APIError is an answer of the simulator's API that is not a success.
type APIError struct {
	Status  int
	Code    string
	Message string
}

func (e *APIError) Error() string {
	return fmt.Sprintf("simulator answered %d %s: %s", e.Status, e.Code, e.Message)
}

// Healthy returns nil when the simulator can process calls.
func (c *Client) Healthy(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/healthz", nil, nil)
}

// Stats returns the totals of the ledgers.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	var out Stats
	return out, c.do(ctx, http.MethodGet, "/healthz", nil, &out)
}

// Faults returns the faults that have not ended.
func (c *Client) Faults(ctx context.Context) ([]Fault, error) {
	var out faultList
	err := c.do(ctx, http.MethodGet, "/sim/faults", nil, &out)
	return out.Faults, err
}

// SetFaults replaces the fault script and returns it with ids.
func (c *Client) SetFaults(ctx context.Context, faults ...Fault) ([]Fault, error) {
	return c.faults(ctx, http.MethodPut, faults)
}

// AddFaults appends to the fault script and returns what was added, with ids.
func (c *Client) AddFaults(ctx context.Context, faults ...Fault) ([]Fault, error) {
	return c.faults(ctx, http.MethodPost, faults)
}

func (c *Client) faults(ctx context.Context, method string, faults []Fault) ([]Fault, error) {
	var out faultList
	err := c.do(ctx, method, "/sim/faults", faultList{faults}, &out)
	return out.Faults, err
}

// RemoveFault ends one fault.
func (c *Client) RemoveFault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/sim/faults/"+url.PathEscape(id), nil, nil)
}

// ClearFaults ends all faults.
func (c *Client) ClearFaults(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/sim/faults", nil, nil)
}

// Settings returns the behaviour in force.
func (c *Client) Settings(ctx context.Context) (Settings, error) {
	var out Settings
	return out, c.do(ctx, http.MethodGet, "/sim/rates", nil, &out)
}

// ChangeSettings applies the named parts and returns all settings.
func (c *Client) ChangeSettings(ctx context.Context, change Settings) (Settings, error) {
	var out Settings
	return out, c.do(ctx, http.MethodPut, "/sim/rates", change, &out)
}

// Effects returns the selected effects in order.
func (c *Client) Effects(ctx context.Context, f Filter) ([]Effect, error) {
	var out []Effect
	err := eachRow(ctx, c, "/sim/effects", f, func(e Effect) error {
		out = append(out, e)
		return nil
	})
	return out, err
}

// Calls returns the selected calls in order of arrival.
func (c *Client) Calls(ctx context.Context, f Filter) ([]Call, error) {
	var out []Call
	err := c.EachCall(ctx, f, func(call Call) error {
		out = append(out, call)
		return nil
	})
	return out, err
}

// EachCall streams the selected calls to yield until it returns an error,
// which EachCall then returns.
func (c *Client) EachCall(ctx context.Context, f Filter, yield func(Call) error) error {
	return eachRow(ctx, c, "/sim/calls", f, yield)
}

// Summary returns what stands of each order, or of one if aggregate is given.
func (c *Client) Summary(ctx context.Context, aggregate string) ([]Summary, error) {
	var out []Summary
	err := eachRow(ctx, c, "/sim/summary", Filter{Aggregate: aggregate}, func(s Summary) error {
		out = append(out, s)
		return nil
	})
	return out, err
}

// Check runs [Check] over the whole effects ledger where it lies.
func (c *Client) Check(ctx context.Context) ([]Violation, error) {
	var out checkResult
	err := c.do(ctx, http.MethodGet, "/sim/check", nil, &out)
	return out.Violations, err
}

// Reset empties both ledgers; see [Config.AllowReset].
func (c *Client) Reset(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/sim/reset", struct{}{}, nil)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("sim client: encode: %w", err)
		}
		body = bytes.NewReader(data)
	}
	resp, err := c.send(ctx, method, path, body, "application/json")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	} else {
		err = json.NewDecoder(resp.Body).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("sim client: %s %s: read reply: %w", method, path, err)
	}
	return nil
}

// send returns the response of a success; the caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("sim client: %w", err)
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("sim client: is the simulator running? %w", err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var p problem
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil || json.Unmarshal(data, &p) != nil {
		p = problem{"unreadable", "the answer is not the simulator's; check the address"}
	}
	return nil, &APIError{resp.StatusCode, p.Code, p.Message}
}

func eachRow[T any](ctx context.Context, c *Client, path string, f Filter, yield func(T) error) error {
	resp, err := c.send(ctx, http.MethodGet, path+"?"+f.query().Encode(), nil, mediaNDJSON)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	dec := json.NewDecoder(bufio.NewReaderSize(resp.Body, 1<<16))
	for {
		var row T
		switch err := dec.Decode(&row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("sim client: %s: read row: %w", path, err)
		}
		if err := yield(row); err != nil {
			return err
		}
	}
}
