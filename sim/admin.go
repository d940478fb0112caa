package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

const maxAdminBody = 4 << 20

// Handler returns the destinations' APIs under /api, the simulator's own API
// under /sim, and /healthz and /readyz.
func (s *Sim) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would redirect unclean paths; a call to a destination must be
		// seen and recorded as it came.
		path := r.URL.EscapedPath()
		if strings.HasPrefix(path, "/sim/") || path == "/healthz" || path == "/readyz" {
			s.admin.ServeHTTP(w, r)
			return
		}
		s.serveCall(w, r)
	})
}

func (s *Sim) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.health)
	mux.HandleFunc("GET /readyz", s.health)
	mux.HandleFunc("GET /sim/faults", s.getFaults)
	mux.HandleFunc("PUT /sim/faults", s.changeFaults(s.script.set))
	mux.HandleFunc("POST /sim/faults", s.changeFaults(s.script.add))
	mux.HandleFunc("DELETE /sim/faults", s.clearFaults)
	mux.HandleFunc("DELETE /sim/faults/{id}", s.removeFault)
	mux.HandleFunc("GET /sim/calls", s.getCalls)
	mux.HandleFunc("GET /sim/effects", s.getEffects)
	mux.HandleFunc("GET /sim/summary", s.getSummary)
	mux.HandleFunc("GET /sim/check", s.getCheck)
	mux.HandleFunc("GET /sim/rates", s.getSettings)
	mux.HandleFunc("PUT /sim/rates", s.putSettings)
	mux.HandleFunc("POST /sim/reset", s.postReset)
	return mux
}

// problem is the body of every error of the simulator's own API.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// faultList is the body of /sim/faults.
type faultList struct {
	Faults []Fault `json:"faults"`
}

func (s *Sim) health(w http.ResponseWriter, _ *http.Request) {
	if err := s.Err(); err != nil {
		writeProblem(w, http.StatusServiceUnavailable, "ledger_unavailable", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, s.Stats())
}

func (s *Sim) getFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, faultList{s.script.list()})
}

func (s *Sim) changeFaults(apply func([]Fault) ([]Fault, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in faultList
		if !readJSON(w, r, &in) {
			return
		}
		var problems []error
		for i, f := range in.Faults {
			if err := s.checkFault(f); err != nil {
				problems = append(problems, fmt.Errorf("fault %d: %w", i+1, err))
			}
		}
		if err := errors.Join(problems...); err != nil {
			writeProblem(w, http.StatusUnprocessableEntity, "invalid_fault", err.Error())
			return
		}
		set, err := apply(in.Faults)
		if err != nil {
			writeProblem(w, http.StatusConflict, "duplicate_fault", err.Error())
			return
		}
		s.watchDoors()
		writeJSON(w, http.StatusOK, faultList{set})
	}
}

func (s *Sim) checkFault(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	if f.Action == RefuseConnection && f.Mode == RefuseByClosing && !s.doors.has(f.Destination) {
		return fmt.Errorf("mode closed: %s has no listener of its own; serve it on one, or use mode reset", f.Destination)
	}
	return nil
}

func (s *Sim) clearFaults(w http.ResponseWriter, _ *http.Request) {
	_, _ = s.script.set(nil) // an empty script has no duplicate
	s.watchDoors()
	writeJSON(w, http.StatusOK, faultList{[]Fault{}})
}

func (s *Sim) removeFault(w http.ResponseWriter, r *http.Request) {
	if !s.script.remove(r.PathValue("id")) {
		writeProblem(w, http.StatusNotFound, "unknown_fault", "no fault has this id; GET /sim/faults lists them")
		return
	}
	s.watchDoors()
	s.getFaults(w, r)
}

func (s *Sim) getSettings(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Settings())
}

func (s *Sim) putSettings(w http.ResponseWriter, r *http.Request) {
	var change Settings
	if !readJSON(w, r, &change) {
		return
	}
	now, err := s.ChangeSettings(change)
	if err != nil {
		writeProblem(w, http.StatusUnprocessableEntity, "invalid_settings", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, now)
}

func (s *Sim) postReset(w http.ResponseWriter, r *http.Request) {
	if !s.cfg.AllowReset {
		writeProblem(w, http.StatusForbidden, "reset_not_allowed",
			"the ledgers are evidence; a simulator for tests allows this with AllowReset")
		return
	}
	if !readJSON(w, r, &struct{}{}) {
		return
	}
	if err := s.Reset(); err != nil {
		writeProblem(w, http.StatusInternalServerError, "reset_failed", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, s.Stats())
}

// readJSON decodes a strict JSON body. It insists on the content type, so that
// a page in a browser cannot send a change without asking first.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		writeProblem(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "send Content-Type: application/json")
		return false
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAdminBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	if err != nil {
		writeProblem(w, http.StatusBadRequest, "invalid_json", err.Error())
		return false
	}
	return true
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(encode(v), '\n'))
}

func writeProblem(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, problem{code, message})
}
