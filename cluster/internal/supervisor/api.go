package supervisor

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/drover-dev/drover/cluster/internal/process"
)

func (s *supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		enc := json.NewEncoder(w)
		flush := http.NewResponseController(w)
		// An error means that the client disconnected, so it cannot be reported.
		_ = s.progress.follow(r.Context(), func(e Event) error {
			if err := enc.Encode(e); err != nil {
				return err
			}
			return flush.Flush()
		})
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.prepared:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.status())
	})
	mux.HandleFunc("POST /down", func(w http.ResponseWriter, _ *http.Request) {
		s.stop()
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST /components/{name}/{verb}", func(w http.ResponseWriter, r *http.Request) {
		p, err := s.group.Get(r.PathValue("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if err := s.operate(r, p); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	return mux
}

// operate executes the request and returns when it is complete.
func (s *supervisor) operate(r *http.Request, p *process.Process) error {
	verb := r.PathValue("verb")
	if verb == "stop" || verb == "restart" {
		p.Stop()
	}
	if verb == "start" || verb == "restart" {
		p.Start()
		ctx, cancel := context.WithTimeout(r.Context(), startTimeout)
		defer cancel()
		return p.WaitReady(ctx)
	}
	return nil
}
