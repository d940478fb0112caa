package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/ebbline/ebb/schemas"
)

// FuzzDecode: whatever arrives, Decode gives one JSON object or one of the
// documented errors, and never panics.
func FuzzDecode(f *testing.F) {
	registry := srfake.NewRegistry()
	srv := httptest.NewServer(registry.Handler())
	f.Cleanup(srv.Close)
	registry.SeedSchema("kinds", 1, 101, sr.Schema{Schema: kindsSchema})
	registry.SeedSchema("exact", 1, 102, sr.Schema{Schema: exactSchema})
	registry.SeedSchema("list", 1, 103, sr.Schema{Schema: listSchema})
	registry.SeedSchema("recursive", 1, 104, sr.Schema{Schema: recursiveSchema})
	client, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{srv.URL}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	if _, err := client.Register(f.Context()); err != nil {
		f.Fatal(err)
	}
	codec := schemas.NewCodec(client)
	order, err := codec.Encode(f.Context(), schemas.OrderStatusUpdated{OrderID: 1, OldStatus: "A", NewStatus: "B", At: at})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(order)
	f.Add(order[:7])
	f.Add([]byte(`{"orderId":9007199254740993}`))
	f.Add([]byte(`{"orderId":`))
	f.Add([]byte(`{"a":{"b":1,"\u0062":2}}`))
	f.Add([]byte(`{"a":"\ud83d\ude00","b":[1e400,{"a":{}}]}`))
	f.Add([]byte(`[]`))
	f.Add([]byte{0, 0, 0, 0xff, 0xff, 1})
	for id := 101; id <= 104; id++ {
		f.Add(wire(id, []byte{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26}))
		f.Add(wire(id, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := codec.Decode(t.Context(), payload)
		if err != nil {
			var decode *schemas.DecodeError
			var unknown *schemas.UnknownSchemaError
			if !errors.As(err, &decode) && !errors.As(err, &unknown) {
				t.Fatalf("undocumented error %T: %v", err, err)
			}
			return
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(got.JSON, &object); err != nil || object == nil {
			t.Fatalf("not a JSON object: %v: %q", err, got.JSON)
		}
		if got.SchemaID == 0 && string(got.JSON) != string(payload) {
			t.Fatal("plain JSON was changed")
		}
		if why := ambiguous(got.JSON); why != "" {
			t.Fatalf("%s: %q", why, got.JSON)
		}
		if _, err := codec.DecodeMessage(t.Context(), payload); err == nil && got.SchemaID == 0 {
			t.Fatal("plain JSON became a message")
		}
	})
}

// ambiguous looks for what readers would understand differently, by other means than the code under test.
func ambiguous(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	type level struct {
		keys map[string]bool // nil for an array
		key  bool
	}
	var stack []level
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		top := len(stack) - 1
		if key, is := token.(string); is && top >= 0 && stack[top].key {
			if stack[top].keys[key] {
				return "a member is there twice"
			}
			stack[top].keys[key], stack[top].key = true, false
			continue
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}, key: true})
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		if n, is := token.(json.Number); is && len(n) > schemas.MaxNumber {
			return "a number is too long"
		}
		if len(stack) > 0 { // a value has ended
			stack[len(stack)-1].key = stack[len(stack)-1].keys != nil
		}
	}
}
