package plan

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SyncErrorOf returns the error by which the provider of a managed resource cannot reconcile it, empty if there is none.
func SyncErrorOf(o Object) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Synced" && c["status"] == "False" {
			message, _ := c["message"].(string)
			return message
		}
	}
	return ""
}

// passing matches identifiers of requests, and times, in the errors of clouds.
var passing = regexp.MustCompile(`(?i)\b(request|trace|correlation|activity)[ _-]?id:? *"?[0-9a-z-]{8,}"?|\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}\S*|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// Steady returns the error of a cloud on one line, without the parts that differ with each request.
func Steady(message string) string {
	return strings.Join(strings.Fields(passing.ReplaceAllString(message, "...")), " ")
}

// missingConfig matches the error that the API server, or a cache, returns for a configuration that does not exist.
var missingConfig = regexp.MustCompile(`(?i)\b([a-z]*providerconfig)s?(?:\.[a-z0-9.-]+)? \\?"([^"\\]+)\\?" not found`)

// MissingConfigIn returns the kind and the name of the provider's configuration that does not exist, by the error of a
// provider. The kind is in lower case in some errors. Both are empty if the error is another one.
func MissingConfigIn(message string) (kind, name string) {
	if m := missingConfig.FindStringSubmatch(message); m != nil {
		return m[1], m[2]
	}
	return "", ""
}
