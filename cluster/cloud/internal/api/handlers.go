package api

import (
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/localcloud"
)

func (s *server) createVM(r *http.Request) (int, any, error) {
	var req localcloud.CreateVMRequest
	if err := read(r, &req); err != nil {
		return 0, nil, err
	}
	vm, lose, err := s.cloud.Create(req)
	if lose != nil {
		if *lose > 0 {
			select {
			case <-s.clock.After(*lose):
			case <-r.Context().Done():
			}
		}
		panic(http.ErrAbortHandler) // The server closes the connection without a response.
	}
	return http.StatusCreated, vm, err
}

func (s *server) getVM(r *http.Request) (int, any, error) {
	vm, err := s.cloud.Get(r.PathValue("id"))
	return http.StatusOK, vm, err
}

func (s *server) listVMs(r *http.Request) (int, any, error) {
	o := localcloud.ListVMsOptions{Tags: map[string]string{}}
	for key, values := range r.URL.Query() {
		switch key {
		case "name":
			o.Name = values[0]
		case "tag":
			for _, tag := range values {
				k, v, ok := strings.Cut(tag, "=")
				if !ok {
					return 0, nil, localcloud.NewError(localcloud.CodeInvalidRequest, "tag: invalid value %q: must be key=value", tag)
				}
				o.Tags[k] = v
			}
		default:
			return 0, nil, localcloud.NewError(localcloud.CodeInvalidRequest, "query: unknown parameter %q: must be name or tag", key)
		}
	}
	vms, err := s.cloud.List(o)
	return http.StatusOK, vms, err
}

func (s *server) updateVM(r *http.Request) (int, any, error) {
	var req localcloud.UpdateVMRequest
	if err := read(r, &req); err != nil {
		return 0, nil, err
	}
	vm, err := s.cloud.SetTags(r.PathValue("id"), req.Tags)
	return http.StatusOK, vm, err
}

func (s *server) deleteVM(r *http.Request) (int, any, error) {
	return http.StatusAccepted, nil, s.cloud.Delete(r.PathValue("id"))
}

func (s *server) rebootVM(r *http.Request) (int, any, error) {
	return http.StatusAccepted, nil, s.cloud.Reboot(r.PathValue("id"))
}

func (s *server) console(r *http.Request) (int, any, error) {
	out, err := s.cloud.Console(r.PathValue("id"))
	return http.StatusOK, text(out), err
}

func (s *server) listImages(*http.Request) (int, any, error) {
	images, err := s.cloud.Images()
	return http.StatusOK, localcloud.ImageList{Items: images}, err
}

func (s *server) getHistory(*http.Request) (int, any, error) {
	changes, err := s.cloud.History()
	return http.StatusOK, localcloud.History{Items: changes}, err
}

func (s *server) getQuota(*http.Request) (int, any, error) {
	return http.StatusOK, s.cloud.Quota(), nil
}

func (s *server) setQuota(r *http.Request) (int, any, error) {
	q := s.cloud.Quota()
	if err := read(r, &q); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, q, s.cloud.SetQuota(q)
}

func (s *server) getSettings(*http.Request) (int, any, error) {
	return http.StatusOK, s.cloud.Settings(), nil
}

func (s *server) setSettings(r *http.Request) (int, any, error) {
	set := s.cloud.Settings()
	if err := read(r, &set); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, set, s.cloud.SetSettings(set)
}

func (s *server) createFault(r *http.Request) (int, any, error) {
	var f localcloud.Fault
	if err := read(r, &f); err != nil {
		return 0, nil, err
	}
	f, err := s.cloud.AddFault(f)
	return http.StatusCreated, f, err
}

func (s *server) listFaults(*http.Request) (int, any, error) {
	return http.StatusOK, localcloud.FaultList{Items: s.cloud.Faults()}, nil
}

func (s *server) deleteFault(r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, s.cloud.DeleteFault(r.PathValue("id"))
}
