package kit

import (
	"bufio"
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requests is a line of the API server's counter of requests.
var requests = regexp.MustCompile(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)

// label is one label of a metric.
var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// Writes counts the write requests that the API server has answered, by verb and resource, such
// as "PATCH virtualmachines/status". Leases and events are left out: all components write them
// even if nothing changes.
func (p *Plane) Writes(ctx context.Context) (map[string]float64, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	rsp, err := h.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rsp.Body.Close() }()

	out := map[string]float64{}
	s := bufio.NewScanner(rsp.Body)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		m := requests.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		l := map[string]string{}
		for _, kv := range label.FindAllStringSubmatch(m[1], -1) {
			l[kv[1]] = kv[2]
		}
		if !write(l) {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		resource := l["resource"]
		if l["subresource"] != "" {
			resource += "/" + l["subresource"]
		}
		out[l["verb"]+" "+resource] += n
	}
	return out, s.Err()
}

func write(l map[string]string) bool {
	switch l["verb"] {
	case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
	default:
		return false
	}
	switch l["resource"] {
	case "leases", "events", "subjectaccessreviews", "tokenreviews", "selfsubjectaccessreviews":
		return false
	}
	// A refused request changes nothing, so it is not a write.
	return strings.HasPrefix(l["code"], "2")
}
