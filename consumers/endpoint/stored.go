package endpoint

import (
	"encoding/json"
	"fmt"

	"github.com/ebbline/ebb/destination/call"
	"github.com/ebbline/ebb/destination/render"
	"github.com/ebbline/ebb/destination/seal"
	"github.com/ebbline/ebb/journal/saga"
)

// stored is a request as the journal keeps it. Where the file redacts something in it, the fields are a masked view for people, and
// what is sent lies sealed beside it.
type stored struct {
	render.Request
	Sealed string `json:",omitempty"`
}

// place binds sealed bytes to their step.
func place(id saga.ID, destination string, dir saga.Direction) string {
	return fmt.Sprintf("%s:%s:%s", id, destination, dir)
}

// pack makes the bytes that are stored.
func (h *HTTP) pack(r render.Request, hide *call.Redactor, place string) ([]byte, error) {
	out := stored{Request: r}
	if view, hidden := hide.Request(r); hidden {
		plain, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		if out.Sealed, err = h.ring.Seal(plain, place); err != nil {
			return nil, fmt.Errorf("the request has redacted fields: %w", err)
		}
		out.Request = view
	}
	return json.Marshal(out)
}

// unpack gives the request as it is sent.
func (h *HTTP) unpack(content []byte, place string) (render.Request, error) {
	var in stored
	if err := json.Unmarshal(content, &in); err != nil || in.Sealed == "" {
		return in.Request, err
	}
	plain, err := h.ring.Open(in.Sealed, place)
	if err != nil {
		return render.Request{}, err
	}
	var r render.Request
	err = json.Unmarshal(plain, &r)
	return r, err
}

// ringFor reads the ring and checks that it has a key where the destination's newest file needs one.
func ringFor(cfg Config) (seal.Ring, error) {
	ring, err := seal.Parse(setting(cfg.Lookup, seal.Env))
	if err == nil && ring.IsZero() && !cfg.Live.Redact.IsZero() {
		err = fmt.Errorf("destination %s redacts fields of its requests: %w", cfg.Live.Name, seal.ErrNoKey)
	}
	return ring, err
}
