package install

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

func condition(status corev1.ConditionStatus, message string) xpv2.Condition {
	return xpv2.Condition{Status: status, Message: message}
}

func ready(source string) installed {
	return installed{source: source, installed: condition("True", ""), healthy: condition("True", "")}
}

func TestPending(t *testing.T) {
	lock := map[string][]string{"root": {"a", "b"}, "a": {"b"}, "b": {}, "other": {}}
	broken := ready("b")
	broken.healthy = condition("False", "runtime is away")
	unresolved := ready("root")
	unresolved.unresolved = 2
	unestablished := ready("a")
	unestablished.notEstablished = []string{"things.example.org"}
	sick := ready("other")
	sick.healthy = condition("False", "")

	stale := ready("b")
	stale.stale = true

	for _, tc := range []struct {
		name string
		view view
		want map[string]string
	}{
		{"AllReady", view{lock, []installed{ready("root"), ready("a"), ready("b")}}, nil},
		{"APackageThatIsNotAskedForDoesNotMatter", view{lock, []installed{ready("root"), ready("a"), ready("b"), sick}}, nil},
		{"NothingYet", view{}, map[string]string{"root": "not created"}},
		{"ADependencyIsMissing", view{lock, []installed{ready("root"), ready("a")}}, map[string]string{"b": "not created"}},
		{"ADependencyIsUnhealthy", view{lock, []installed{ready("root"), ready("a"), broken}}, map[string]string{"b": "runtime is away"}},
		{"DependenciesAreNotResolved", view{lock, []installed{unresolved, ready("a"), ready("b")}}, map[string]string{"root": "2 dependencies"}},
		{"ATypeIsNotEstablished", view{lock, []installed{ready("root"), unestablished, ready("b")}}, map[string]string{"a": "things.example.org"}},
		{"AnUpgradeIsNotNoticedYet", view{lock, []installed{ready("root"), ready("a"), stale}}, map[string]string{"b": "not unpacked"}},
		{"TheLockDoesNotKnowItYet", view{nil, []installed{ready("root")}}, map[string]string{"root": "lock"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.view.pending("root")
			if len(got) != len(tc.want) {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
			for source, want := range tc.want {
				if !strings.Contains(got[source], want) {
					t.Errorf("%s: got %q, want %q in it", source, got[source], want)
				}
			}
		})
	}
}

func TestObjectName(t *testing.T) {
	for _, tc := range []struct{ name, pkg, given, want, source string }{
		{"ByDefaultThatOfTheRepository", "xpkg.drover.dev/drover/function-drover:v0.1.0", "", "drover-function-drover", "xpkg.drover.dev/drover/function-drover"},
		{"AGivenNameWins", "xpkg.drover.dev/drover/drover:v0.1.0", "mine", "mine", "xpkg.drover.dev/drover/drover"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name, source, err := Package{Reference: tc.pkg, Name: tc.given}.object()
			if err != nil || name != tc.want || source != tc.source {
				t.Errorf("got %q, %q, %v", name, source, err)
			}
		})
	}
	if _, _, err := (Package{Reference: "drover"}).object(); err == nil || !strings.Contains(err.Error(), "drover") {
		t.Errorf("a reference without registry and tag: got %v", err)
	}
}
