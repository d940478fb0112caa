package kafkarun

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// reply is an answer of the in-memory registry, or one in its place.
type reply struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *reply) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

func (r *reply) decode(into any) error { return json.Unmarshal(r.body.Bytes(), into) }

// id is the schema id in the answer to a registration, or 0.
func (r *reply) id() int {
	var answer struct {
		ID int `json:"id"`
	}
	if r.decode(&answer) != nil {
		return 0 // a list of deleted versions, for example
	}
	return answer.ID
}

func writeReply(w http.ResponseWriter, r *reply) {
	for k, v := range r.header {
		w.Header()[k] = v
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes())
}

// refuse makes an error reply as registries do.
func refuse(status, code int, message string) *reply {
	return answer(status, map[string]any{"error_code": code, "message": message})
}

func answer(status int, v any) *reply {
	r := &reply{header: http.Header{"Content-Type": {"application/vnd.schemaregistry.v1+json"}}}
	r.WriteHeader(status)
	_ = json.NewEncoder(r).Encode(v) // memory only
	return r
}

// ask lets the in-memory registry handle a request.
func (g *gate) ask(r *http.Request) *reply {
	got := &reply{header: http.Header{}}
	g.inner.ServeHTTP(got, r)
	got.WriteHeader(http.StatusOK)
	return got
}

func (g *gate) get(uri string) *reply { return g.request(http.MethodGet, uri, nil) }

func (g *gate) post(uri string, body []byte) *reply { return g.request(http.MethodPost, uri, body) }

func (g *gate) request(method, uri string, body []byte) *reply {
	r, err := http.NewRequest(method, uri, bytes.NewReader(body)) //nolint:noctx // no network
	if err != nil {
		return refuse(http.StatusBadRequest, 400, "the subject makes no valid path")
	}
	return g.ask(r)
}
