package clusterapi

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

// A bootstrapReport has the facts of a BootstrapConfig.
type bootstrapReport struct {
	// created means that the Secret with the user data exists.
	created    bool
	secretName string
	// problem is the error in the words of the provider, "" while it works or waits.
	problem string
	// report has the pause and the conditions, which have the form of those of an InfraMachine.
	report
}

// failing are the words in which bootstrap providers report an error. The contract v1beta2 has no form of it.
var failing = regexp.MustCompile(`(?i)fail|error|invalid|corrupt|denied|forbidden`)

// readBootstrap reads a BootstrapConfig by the rules of a contract. Fields of another type than the contract's count as
// absent.
func readBootstrap(c contract, o *unstructured.Unstructured) bootstrapReport {
	r := bootstrapReport{secretName: stringAt(o, "status", "dataSecretName"), report: read(c, o)}
	path := []string{"status", "initialization", "dataSecretCreated"}
	if c == v1beta1 {
		path = []string{"status", "ready"}
	}
	r.created, _, _ = unstructured.NestedBool(o.Object, path...)
	if !r.created {
		r.problem = bootstrapProblem(c, o, r.report)
	}
	return r
}

// bootstrapProblem returns the error that a BootstrapConfig reports, "" if it only waits.
func bootstrapProblem(c contract, o *unstructured.Unstructured, r report) string {
	failed := r.failed
	if c == v1beta2 {
		// Providers of both contracts have the words of an error only here, as long as the old contract exists.
		for _, condition := range listAt(o, "status", "deprecated", "v1beta1", "conditions") {
			s := func(key string) string { v, _ := condition[key].(string); return v }
			if s("type") != "Ready" && s("status") == "False" && slices.Contains([]string{"Error", "Warning"}, s("severity")) {
				failed = cmp.Or(failed, s("type")+": "+s("reason")+": "+s("message"))
			}
		}
	}
	for _, condition := range r.conditions {
		if isOpen(condition) && failing.MatchString(condition.Reason+" "+condition.Message) {
			failed = cmp.Or(failed, condition.Type+": "+condition.Reason+": "+condition.Message)
		}
	}
	return text.Shorten(cmp.Or(failed, r.problem), maxMessage)
}

// waitsFor returns the cause for which there is no user data yet, in the words of the provider.
func (r bootstrapReport) waitsFor() string {
	return cmp.Or(r.cause(isOpen), "its provider has not reported that the Secret with the user data is created")
}

// isOpen reports whether a condition is not True yet. That of a pause never is, unless it holds all.
func isOpen(c v1alpha1.Condition) bool {
	return c.Status != string(metav1.ConditionTrue) && c.Type != "Paused"
}

// userDataIn returns the user data in the Secret of a BootstrapConfig. The status of a BootstrapConfig can be forged, and
// the user data is brought onto a VM: only a Secret that the BootstrapConfig controls is read, as the contract has it.
// The problem is "" if there is none, and never quotes the content.
func userDataIn(s *corev1.Secret, config *unstructured.Unstructured) (data map[string][]byte, problem string) {
	what := "Secret " + s.Namespace + "/" + s.Name
	if !metav1.IsControlledBy(s, config) {
		return nil, fmt.Sprintf("%s, which status.dataSecretName of the %s names: metadata.ownerReferences must have the %s as the controller", what, config.GetKind(), config.GetKind())
	}
	value, format := s.Data[machinev1alpha1.UserDataKeyClusterAPI], string(s.Data[machinev1alpha1.UserDataKeyFormat])
	if len(value) == 0 {
		return nil, fmt.Sprintf("%s: has no key %q: the bootstrap provider must write the user data to it", what, machinev1alpha1.UserDataKeyClusterAPI)
	}
	out := map[string][]byte{machinev1alpha1.UserDataKeyClusterAPI: value}
	switch format {
	case "":
	case machinev1alpha1.UserDataFormatCloudInit, machinev1alpha1.UserDataFormatIgnition:
		out[machinev1alpha1.UserDataKeyFormat] = []byte(format)
	default:
		return nil, fmt.Sprintf("%s, key %q: invalid value %q: must be %s or %s", what, machinev1alpha1.UserDataKeyFormat, text.Shorten(format, 32), machinev1alpha1.UserDataFormatCloudInit, machinev1alpha1.UserDataFormatIgnition)
	}
	return out, ""
}
