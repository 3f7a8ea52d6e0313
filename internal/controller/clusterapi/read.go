package clusterapi

import (
	"cmp"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// annotationPaused is the annotation by which a user pauses an object.
	annotationPaused = "cluster.x-k8s.io/paused"
	// maxMessage and maxConditions bound the copy of an InfraMachine in a status.
	maxMessage, maxConditions = 512, 16
)

// addressTypes are the types that the contract allows.
var addressTypes = []string{"Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"}

// A report has the facts of an InfraMachine.
type report struct {
	provisioned   bool
	providerID    string
	addresses     []nativev1alpha1.Address
	failureDomain string
	interruptible bool
	paused        bool
	// failed is the terminal failure, "" if there is none. Only the contract v1beta1 has it.
	failed     string
	conditions []v1alpha1.Condition
	// problem is the error while the VM does not run, with its class in front. It is "" while the provider works or
	// waits.
	problem string
}

// read an InfraMachine by the rules of a contract. Fields of another type than the contract's count as absent.
func read(c contract, o *unstructured.Unstructured) report {
	r := report{provisioned: isProvisioned(c, o), providerID: stringAt(o, "spec", "providerID")}
	r.failureDomain = stringAt(o, "status", "failureDomain")
	if c == v1beta1 {
		r.failureDomain = cmp.Or(stringAt(o, "spec", "failureDomain"), r.failureDomain)
		if reason, message := stringAt(o, "status", "failureReason"), stringAt(o, "status", "failureMessage"); reason+message != "" {
			r.failed = text.Shorten(cmp.Or(reason, "failed")+": "+message, maxMessage)
		}
	}
	r.interruptible, _, _ = unstructured.NestedBool(o.Object, "status", "interruptible")
	_, r.paused = o.GetAnnotations()[annotationPaused]
	for _, a := range listAt(o, "status", "addresses") {
		typ, _ := a["type"].(string)
		address, _ := a["address"].(string)
		if slices.Contains(addressTypes, typ) && address != "" {
			r.addresses = append(r.addresses, nativev1alpha1.Address{Type: typ, Address: address})
		}
	}
	severities := map[string]string{}
	for _, condition := range listAt(o, "status", "conditions") {
		s := func(key string) string { v, _ := condition[key].(string); return v }
		if s("type") == "" || len(r.conditions) == maxConditions {
			continue
		}
		severities[s("type")] = s("severity")
		r.conditions = append(r.conditions, v1alpha1.Condition{Type: s("type"), Status: s("status"), Reason: s("reason"), Message: text.Shorten(s("message"), maxMessage)})
		r.paused = r.paused || s("type") == "Paused" && s("status") == "True"
	}
	if !r.provisioned {
		r.problem = problemOf(r.conditions, severities)
	}
	return r
}

// isProvisioned reports whether a provider completed an InfraMachine or an InfraCluster.
func isProvisioned(c contract, o *unstructured.Unstructured) bool {
	path := []string{"status", "initialization", "provisioned"}
	if c == v1beta1 {
		path = []string{"status", "ready"}
	}
	done, _, _ := unstructured.NestedBool(o.Object, path...)
	return done
}

// classes of the words in which providers report a VM that they could not create. The contract has none.
var classes = native.Rules{
	{Text: regexp.MustCompile(`(?i)quota|limit.?exceeded|exceed\w* .*limit`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`(?i)insufficient\w*capacity|no capacity|out of (stock|capacity)|capacity (is )?(not|un)available|not enough (room|capacity|hosts)|no (available|matching) host|resource_pool_exhausted|stockout`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`(?i)throttl|rate.?limit|too many requests`), Class: fn.ErrorThrottled},
	{Text: regexp.MustCompile(`(?i)unauthori[sz]ed|forbidden|access.?denied|credential`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(`(?i)invalid|not ?found|unsupported`), Class: fn.ErrorInvalidRequest},
}

// problemOf returns the condition that reports an error: one whose words have a class, or the first one that is no summary of the
// others, such as "0 of 2 completed". Conditions of the contract v1beta2 have no severity: such a condition is an error if its
// words have a class, because an object that is created is not Ready either.
func problemOf(conditions []v1alpha1.Condition, severities map[string]string) string {
	found := ""
	for _, c := range slices.SortedStableFunc(slices.Values(conditions), summariesLast) {
		if c.Status != "False" || c.Message == "" && severities[c.Type] == "" {
			continue
		}
		class, known := classes.ClassOf(c.Reason, c.Message)
		severity := severities[c.Type]
		if severity == "Info" || !known && severity != "Error" && severity != "Warning" {
			continue
		}
		problem := text.Shorten(string(class)+": "+c.Type+": "+c.Reason+": "+c.Message, maxMessage)
		if known {
			return problem
		}
		found = cmp.Or(found, problem)
	}
	return found
}

// summariesLast orders the condition Ready, which has the words of another condition or a count, behind the others.
func summariesLast(a, b v1alpha1.Condition) int {
	isSummary := func(c v1alpha1.Condition) int {
		if c.Type == "Ready" {
			return 1
		}
		return 0
	}
	return isSummary(a) - isSummary(b)
}

// waitsFor returns the cause for which a VM does not run, in the words of its provider.
func (r report) waitsFor() string {
	return cmp.Or(r.cause(func(c v1alpha1.Condition) bool { return c.Status == "False" }), "its provider has not reported that it is provisioned")
}

// cause for which a provider is not done, by the first condition of those that wait, Ready before all others. It is "" if no
// condition has one.
func (r report) cause(waits func(v1alpha1.Condition) bool) string {
	if r.paused {
		return "paused: the provider does not touch it until the annotation " + annotationPaused + " and spec.paused of the Cluster are gone"
	}
	for _, want := range []string{"Ready", ""} {
		for _, c := range r.conditions {
			if waits(c) && (c.Type == want || want == "") && c.Reason+c.Message != "" {
				return text.Shorten(c.Type+": "+c.Reason+" "+c.Message, maxMessage)
			}
		}
	}
	return ""
}

func stringAt(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// listAt returns the objects of a list.
func listAt(o *unstructured.Unstructured, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	items, _ := list.([]any)
	var out []map[string]any
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
