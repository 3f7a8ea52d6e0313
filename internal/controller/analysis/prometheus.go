package analysis

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/vm"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// maxAnswer is the maximum size of an answer, and maxSamples how many samples it may have.
	maxAnswer, maxSamples = 1 << 20, 1000
	// maxLabels is the maximum length of the labels of a sample in a result.
	maxLabels = 128
	// nodesOfQuery is how many Nodes a placeholder may stand for.
	nodesOfQuery = 500
)

var (
	errTooLarge = errors.New("its answer is larger than 1 MiB")
	errRedirect = errors.New("it answers with a redirect, which is not followed")
)

// condition of a query on its result.
func condition(a *machinev1alpha1.PrometheusAnalysis) (*vm.Expression, error) {
	return vm.NewExpression("spec.prometheus.condition", a.Condition, "result")
}

// A credential of a Prometheus server, from its Secret.
type credential struct {
	username, password, token string
	roots                     *x509.CertPool
}

// credentials returns those of an analysis, empty if it names none. The last result is what a user must correct.
func (r *reconciler) credentials(ctx context.Context, a *machinev1alpha1.RolloutAnalysis) (c credential, problem string, err error) {
	ref := a.Spec.Prometheus.SecretRef
	if ref == nil {
		return c, "", nil
	}
	s := &corev1.Secret{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: ref.Name}, s); err != nil {
		if kerrors.IsNotFound(err) {
			return c, fmt.Sprintf("spec.prometheus.secretRef.name: invalid value %q: there is no such Secret in the namespace %s: create one of the type %s", ref.Name, a.Namespace, machinev1alpha1.SecretTypePrometheus), nil
		}
		return c, "", err
	}
	if s.Type != machinev1alpha1.SecretTypePrometheus {
		return c, fmt.Sprintf("spec.prometheus.secretRef.name: invalid value %q: the Secret must be of the type %s", ref.Name, machinev1alpha1.SecretTypePrometheus), nil
	}
	of := func(key string) string { return strings.TrimSpace(string(s.Data[key])) }
	c.username, c.password, c.token = of(machinev1alpha1.PrometheusKeyUsername), of(machinev1alpha1.PrometheusKeyPassword), of(machinev1alpha1.PrometheusKeyToken)
	if pem := s.Data[machinev1alpha1.PrometheusKeyCA]; len(pem) > 0 {
		if c.roots = x509.NewCertPool(); !c.roots.AppendCertsFromPEM(pem) {
			return c, fmt.Sprintf("spec.prometheus.secretRef.name: invalid value %q: the key %s of the Secret must have certificates in PEM", ref.Name, machinev1alpha1.PrometheusKeyCA), nil
		}
	}
	return c, "", nil
}

// A guarded transport adds the credentials, and limits what is read of an answer.
type guarded struct {
	next http.RoundTripper
	credential
}

// RoundTrip sends a request.
func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	switch {
	case g.token != "":
		req.Header.Set("Authorization", "Bearer "+g.token)
	case g.username != "":
		req.SetBasicAuth(g.username, g.password)
	}
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest {
		_ = res.Body.Close()
		return nil, errRedirect
	}
	res.Body = &bounded{ReadCloser: res.Body, left: maxAnswer}
	return res, nil
}

// A bounded body fails after a number of bytes.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// query the server of an analysis.
func (r *reconciler) query(ctx context.Context, a *machinev1alpha1.PrometheusAnalysis, c credential, query string) (model.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.Timeout.Duration, machinev1alpha1.DefaultQueryTimeout))
	defer cancel()
	transport := &http.Transport{
		// A proxy would dial in place of the dialer that has the limits.
		Proxy: nil, DialContext: r.networks.DialContext, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots},
	}
	defer transport.CloseIdleConnections()
	server, err := api.NewClient(api.Config{Address: a.URL, Client: &http.Client{
		Transport:     guarded{transport, c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}})
	if err != nil {
		return nil, err
	}
	value, _, err := promv1.NewAPI(server).Query(ctx, query, r.now())
	return value, err
}

// answers are what a server can answer in place of a result. Its own texts are not repeated: they may be those of a server
// that the user of the namespace cannot reach.
var answers = map[promv1.ErrorType]string{
	promv1.ErrBadData:     "it does not understand the query",
	promv1.ErrTimeout:     "the query takes too long",
	promv1.ErrCanceled:    "the query was canceled",
	promv1.ErrExec:        "it cannot execute the query",
	promv1.ErrBadResponse: "it does not answer as Prometheus does",
	promv1.ErrServer:      "it reports an error of its own",
	promv1.ErrClient:      "it refuses the request: look at the URL and the credentials",
}

// causeOf returns the cause of an error of a query.
func causeOf(err error) string {
	var refused *promv1.Error
	what, denied := target.Denied(err)
	switch {
	case errors.Is(err, errTooLarge):
		return errTooLarge.Error()
	case errors.Is(err, errRedirect):
		return errRedirect.Error()
	case denied:
		return "its address is " + what + ", to which no connection is made for a RolloutAnalysis; the argument --allow-target-networks of provider-drover can allow it"
	case errors.As(err, &refused):
		return cmp.Or(answers[refused.Type], answers[promv1.ErrBadResponse])
	}
	return target.Cause(err)
}

// withNames returns a query with the names in place of its placeholders. A dot in a name would stand for any character. The name
// of a Node comes from its cluster, and one that no API server accepts could end the string that it is in: it is left out.
func withNames(query, namespace string, run *machinev1alpha1.RolloutAnalysisRun, f fleet) string {
	expression := func(machines []*machinev1alpha1.Machine) string {
		var out []string
		for _, m := range machines[:min(len(machines), nodesOfQuery)] {
			if name := m.Status.NodeRef.Name; len(validation.IsDNS1123Subdomain(name)) == 0 {
				out = append(out, strings.ReplaceAll(name, ".", "[.]"))
			}
		}
		// No Node has the name.
		return cmp.Or(strings.Join(out, "|"), "-")
	}
	return strings.NewReplacer(
		"${newNodes}", expression(f.new), "${oldNodes}", expression(f.old), "${newMachineSet}", run.Spec.NewMachineSet,
		"${machineDeployment}", run.Spec.MachineDeployment, "${namespace}", namespace,
	).Replace(query)
}

// A sample of a result.
type sample struct {
	labels model.Metric
	value  float64
}

// samplesOf returns the samples of a result, and why it cannot be judged.
func samplesOf(v model.Value) ([]sample, string) {
	var out []sample
	switch v := v.(type) {
	case *model.Scalar:
		out = append(out, sample{value: float64(v.Value)})
	case model.Vector:
		for _, s := range v {
			if s.Histogram != nil {
				return nil, "the result of the query has histograms: it must have numbers"
			}
			out = append(out, sample{s.Metric, float64(s.Value)})
		}
	default:
		return nil, fmt.Sprintf("the result of the query is of the type %s: it must be a vector or a scalar", v.Type())
	}
	switch {
	case len(out) == 0:
		return nil, "the query has no result: no sample matches it"
	case len(out) > maxSamples:
		return nil, fmt.Sprintf("the result of the query has %d samples: it must have at most %d", len(out), maxSamples)
	}
	for _, s := range out {
		if math.IsNaN(s.value) || math.IsInf(s.value, 0) {
			return nil, "the result of the query has a value that is not a number"
		}
	}
	return out, ""
}

// decide whether samples meet a condition.
func decide(a *machinev1alpha1.PrometheusAnalysis, samples []sample) measurement {
	program, err := condition(a)
	if err != nil {
		return inconclusive(err.Error())
	}
	result := make([]any, 0, len(samples))
	m := measurement{}
	for _, s := range samples {
		labels := map[string]any{}
		for k, v := range s.labels {
			labels[string(k)] = string(v)
		}
		result = append(result, map[string]any{"labels": labels, "value": s.value})
		name := cmp.Or(text.Shorten(s.labels.String(), maxLabels), "{}")
		m.numbers = append(m.numbers, machinev1alpha1.AnalysisNumber{Name: name, New: strconv.FormatFloat(s.value, 'g', 6, 64), Limit: text.Shorten(a.Condition, maxLabels)})
	}
	got, err := program.Eval(map[string]any{"result": result})
	if err != nil {
		return inconclusive(err.Error())
	}
	passed, ok := got.(bool)
	if !ok {
		return inconclusive(fmt.Sprintf("spec.prometheus.condition: %q: must be true or false", a.Condition))
	}
	m.passed = passed
	var values []string
	for _, n := range m.numbers[:min(len(m.numbers), maxNumbers)] {
		values = append(values, n.Name+" = "+n.New)
	}
	m.message = fmt.Sprintf("%s is %t for %s", a.Condition, passed, strings.Join(values, ", "))
	if more := len(m.numbers) - len(values); more > 0 {
		m.message += fmt.Sprintf(" and %d more", more)
	}
	return m
}

// measurePrometheus queries the server, and decides on the result.
func (r *reconciler) measurePrometheus(ctx context.Context, a *machinev1alpha1.RolloutAnalysis, run *machinev1alpha1.RolloutAnalysisRun, f fleet) measurement {
	p := a.Spec.Prometheus
	c, problem, err := r.credentials(ctx, a)
	if err != nil {
		return inconclusive("the Secret of spec.prometheus.secretRef cannot be read")
	}
	if problem != "" {
		return inconclusive(problem)
	}
	v, err := r.query(ctx, p, c, withNames(p.Query, run.Namespace, run, f))
	if err != nil {
		return inconclusive(fmt.Sprintf("the query to %s failed: %s", p.URL, causeOf(err)))
	}
	samples, problem := samplesOf(v)
	if problem != "" {
		return inconclusive(problem)
	}
	return decide(p, samples)
}
