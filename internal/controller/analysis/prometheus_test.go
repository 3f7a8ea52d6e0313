package analysis

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const maxErrors = "result.all(r, r.value < 0.01)"

// vector is the answer of a server with samples of the errors of a job.
func vector(values ...string) string {
	var samples []string
	for i, v := range values {
		samples = append(samples, fmt.Sprintf(`{"metric":{"job":"job-%d"},"value":[1,%q]}`, i, v))
	}
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
}

func ofPrometheus(url string, changes ...func(*machinev1alpha1.PrometheusAnalysis)) *machinev1alpha1.RolloutAnalysis {
	return ofNodes("errors", func(s *machinev1alpha1.RolloutAnalysisSpec) {
		s.Nodes, s.Count = nil, 1
		s.Prometheus = &machinev1alpha1.PrometheusAnalysis{URL: url, Query: `rate(errors{node=~"${newNodes}"}[1m])`, Condition: maxErrors}
		for _, change := range changes {
			change(s.Prometheus)
		}
	})
}

func loopback() target.Networks {
	return target.Networks{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

func TestPrometheusIsQueried(t *testing.T) {
	const pass, fail, inconclusive = machinev1alpha1.AnalysisPass, machinev1alpha1.AnalysisFail, machinev1alpha1.AnalysisInconclusive
	answers := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	for name, tc := range map[string]struct {
		answer   http.HandlerFunc
		analysis func(*machinev1alpha1.PrometheusAnalysis)
		verdict  machinev1alpha1.AnalysisVerdict
		message  string
	}{
		"a condition that holds":            {answers(200, vector("0.001", "0")), nil, pass, `result.all(r, r.value < 0.01) is true for {job="job-0"} = 0.001, {job="job-1"} = 0`},
		"a condition that does not hold":    {answers(200, vector("0.001", "0.5")), nil, fail, `is false for {job="job-0"} = 0.001, {job="job-1"} = 0.5`},
		"a scalar":                          {answers(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}`), nil, pass, "{} = 0"},
		"a condition on labels":             {answers(200, vector("1")), func(p *machinev1alpha1.PrometheusAnalysis) { p.Condition = `result.exists(r, r.labels.job == "job-0")` }, pass, ""},
		"a condition that is not a boolean": {answers(200, vector("1")), func(p *machinev1alpha1.PrometheusAnalysis) { p.Condition = `size(result)` }, inconclusive, "must be true or false"},
		"a label that no sample has":        {answers(200, vector("1")), func(p *machinev1alpha1.PrometheusAnalysis) { p.Condition = `result.all(r, r.labels.pod == "a")` }, inconclusive, "no such key: pod"},
		"no samples":                        {answers(200, vector()), nil, inconclusive, "the query has no result"},
		"a value that is not a number":      {answers(200, vector("NaN")), nil, inconclusive, "a value that is not a number"},
		"a matrix":                          {answers(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), nil, inconclusive, "is of the type matrix: it must be a vector or a scalar"},
		"a query that is not understood":    {answers(400, `{"status":"error","errorType":"bad_data","error":"internal words"}`), nil, inconclusive, "it does not understand the query"},
		"credentials that are refused":      {answers(401, "internal words"), nil, inconclusive, "it refuses the request: look at the URL and the credentials"},
		"an error of the server":            {answers(500, "internal words"), nil, inconclusive, "it reports an error of its own"},
		"no Prometheus":                     {answers(200, "<html>internal words</html>"), nil, inconclusive, "it does not answer as Prometheus does"},
		"an answer that is too large":       {answers(200, vector(strings.Repeat("1", maxAnswer))), nil, inconclusive, "its answer is larger than 1 MiB"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		}, nil, inconclusive, "it answers with a redirect, which is not followed"},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) {
			// A server notices that its client is gone after it read the request.
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, func(p *machinev1alpha1.PrometheusAnalysis) {
			p.Timeout = metav1.Duration{Duration: time.Millisecond}
		}, inconclusive, "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			t.Cleanup(server.Close)
			a := ofPrometheus(server.URL)
			if tc.analysis != nil {
				tc.analysis(a.Spec.Prometheus)
			}
			w := newWorld(t, run("errors"), a)
			w.networks = loopback()
			w.join(t, "new", 1, 0)
			s, _ := w.reconcile(t)
			if len(s.Results) != 1 || s.Results[0].Verdict != tc.verdict || !strings.Contains(s.Results[0].Message, tc.message) {
				t.Fatalf("%+v, want %s with %q", s, tc.verdict, tc.message)
			}
			if strings.Contains(fmt.Sprint(s), "internal words") {
				t.Errorf("the status repeats a text of the server: %+v", s)
			}
		})
	}
}

func TestPlaceholdersOfAQuery(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("query")
		fmt.Fprint(w, vector("0"))
	}))
	t.Cleanup(server.Close)
	w := newWorld(t, run("errors"), ofPrometheus(server.URL, func(p *machinev1alpha1.PrometheusAnalysis) {
		p.Query = `${newNodes} / ${oldNodes} / ${newMachineSet} / ${machineDeployment} / ${namespace}`
	}))
	w.networks = loopback()
	w.join(t, "new", 3, 0)
	for machine, node := range map[string]string{"new-1": "ip-10.eu", "new-2": `x"} or vector(0) #`} { // The last one by a cluster that lies.
		m := &machinev1alpha1.Machine{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: machine}, m); err != nil {
			t.Fatal(err)
		}
		m.Status.NodeRef.Name = node
		if err := w.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile(t)
	if want := "new-0|ip-10[.]eu / - / new / workers / team"; asked != want {
		t.Errorf("the query is %q, want %q", asked, want)
	}
}

// TestAnalysesReachNoInternalAddress has a server at an address that a tenant may not connect to.
func TestAnalysesReachNoInternalAddress(t *testing.T) {
	reached := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(server.Close)
	w := newWorld(t, run("errors"), ofPrometheus(server.URL))
	w.join(t, "new", 1, 0)
	s, _ := w.reconcile(t)
	if r := s.Results[0]; reached || r.Verdict != machinev1alpha1.AnalysisInconclusive || !strings.Contains(r.Message, "its address is a loopback address, to which no connection is made") {
		t.Errorf("reached %t: %+v", reached, r)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		want func(*http.Request) bool
	}{
		"a token":    {map[string]string{"token": "t0ken\n"}, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer t0ken" }},
		"a password": {map[string]string{"username": "drover", "password": "pw"}, func(r *http.Request) bool { u, p, _ := r.BasicAuth(); return u == "drover" && p == "pw" }},
		"none":       {nil, func(r *http.Request) bool { return r.Header.Get("Authorization") == "" }},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !tc.want(r) {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				fmt.Fprint(w, vector("0"))
			}))
			t.Cleanup(server.Close)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "login"}, Type: machinev1alpha1.SecretTypePrometheus, Data: map[string][]byte{
				"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			}}
			for k, v := range tc.data {
				secret.Data[k] = []byte(v)
			}
			w := newWorld(t, run("errors"), secret, ofPrometheus(server.URL, func(p *machinev1alpha1.PrometheusAnalysis) {
				p.SecretRef = &machinev1alpha1.AnalysisSecretReference{Name: "login"}
			}))
			w.networks = loopback()
			w.join(t, "new", 1, 0)
			if s, _ := w.reconcile(t); len(s.Results) != 1 || s.Results[0].Verdict != machinev1alpha1.AnalysisPass {
				t.Errorf("%+v", s)
			}
		})
	}
}
