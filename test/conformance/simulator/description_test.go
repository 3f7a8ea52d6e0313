package simulator

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const good = `
provider: nimbus
class: class.yaml
providerConfig: {apiVersion: nimbus.example.org/v1, kind: ClusterProviderConfig, missing: a, secretMissing: b, refused: c}
resources:
  - apiVersion: nimbus.example.org/v1
    kind: Server
    vm: {userData: {path: spec.forProvider.userData}, tags: {path: spec.forProvider.tags}}
refusals:
  Throttled: {error: slow down}
`

func TestADescriptionThatIsWrongIsRefusedWithItsField(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"AFieldThatThereIsNot":    {"provider: nimbus", "provider: nimbus\nflavour: sweet", "flavour"},
		"ARuntimeThatThereIsNot":  {"provider: nimbus", "provider: nimbus\nruntime: Pulumi", "runtime"},
		"NoVM":                    {"    vm: {", "    wm: {", "wm"},
		"NoUserData":              {"userData: {path: spec.forProvider.userData}, ", "", "resources[0].vm.userData.path"},
		"AClassThatThereIsNot":    {"Throttled:", "Tired:", "refusals[Tired]"},
		"ARefusalThatSaysNothing": {"{error: slow down}", "{}", "refusals[Throttled]"},
		"NoTextForWrongOnes":      {", refused: c", "", "providerConfig.refused"},
	}
	read := func(t *testing.T, text string) error {
		t.Helper()
		file := filepath.Join(t.TempDir(), "nimbus.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file)
		return err
	}
	if err := read(t, good); err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := read(t, strings.Replace(good, tc.old, tc.new, 1)); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "nimbus.yaml") {
				t.Errorf("%v, want one of %s", err, tc.want)
			}
		})
	}
}

func TestTextsAreTemplatesOfWhatIsKnown(t *testing.T) {
	facts := map[string]any{"id": "i-7", "vm": map[string]any{"spec": map[string]any{"zone": "a"}}}
	got, err := expand(map[string]any{"id": "{{ .id }}", "nics": []any{map[string]any{"zone": "zone-{{ .vm.spec.zone }}", "index": int64(0)}}, "on": true}, facts)
	want := map[string]any{"id": "i-7", "nics": []any{map[string]any{"zone": "zone-a", "index": int64(0)}}, "on": true}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := expand(map[string]any{"ip": "{{ .ip }}"}, facts); err == nil || !strings.Contains(err.Error(), "ip: ") {
		t.Errorf("what is not known is an error of its field: %v", err)
	}
}

func TestAMetadataServiceAnswersOnlyWhoAsksRightly(t *testing.T) {
	h := metadata([]Answer{{URL: "http://169.254.169.254/id", Headers: map[string]string{"Flavor": "of-{{ .id }}"}, Text: "{{ .id }}"}}, map[string]any{"id": "i-7"})
	ask := func(method, flavor string) (int, string) {
		r := httptest.NewRequest(method, "http://169.254.169.254/id", nil)
		r.Header.Set("Flavor", flavor)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	if code, body := ask("GET", "of-i-7"); code != 200 || body != "i-7" {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := ask("GET", "of-i-8"); code != 404 {
		t.Errorf("a wrong header is answered with %d", code)
	}
	if code, _ := ask("PUT", "of-i-7"); code != 404 {
		t.Errorf("a wrong method is answered with %d", code)
	}
}

func TestTagsAreAMapOrWords(t *testing.T) {
	m := &managedResource{Unstructured: unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"map": map[string]any{"a": "1"}, "words": []any{"plain", "a=1"}, "text": "a=1",
	}}}}
	for path, from := range map[string]Tags{"map": {Path: "spec.map"}, "words": {Path: "spec.words", Separator: "="}} {
		if got, err := readTags(from, m); err != nil || !cmp.Equal(got, map[string]string{"a": "1"}) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if _, err := readTags(Tags{Path: "spec.text"}, m); err == nil {
		t.Error("a text is taken for tags")
	}
}
