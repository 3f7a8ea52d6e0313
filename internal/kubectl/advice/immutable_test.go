package advice

import (
	"maps"
	"regexp"
	"testing"
)

// changesAClass matches a cure that changes a class. The spec of a class is immutable, except for the namespaces that a
// ClusterMachineClass serves.
var changesAClass = regexp.MustCompile(`(?i)\b(correct|change|set|edit|add|remove|raise|lower)\b([^.:,]|[.]\S)*\b(of|in|to) the class\b|\bcorrect the class\b`)

// TestNoCureChangesWhatIsImmutable: a cure that the API server refuses costs a user the night.
func TestNoCureChangesWhatIsImmutable(t *testing.T) {
	all := maps.Clone(codes)
	for k, a := range reasons {
		all[k.kind+"/"+k.reason] = a
	}
	serves := regexp.MustCompile(`spec\.allowedNamespaces`)
	for reason, a := range all {
		if changesAClass.MatchString(a.Do) && !serves.MatchString(a.Do) {
			t.Errorf("%s: %q: a class is immutable", reason, a.Do)
		}
	}
	for _, wrong := range []string{"Correct spec.forProvider of the class.", "Correct the class or the Secret.", "Add the size to the class."} {
		if !changesAClass.MatchString(wrong) {
			t.Errorf("%q is not recognized", wrong)
		}
	}
}
