package azuretest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAQuery(t *testing.T) {
	table := []map[string]any{
		{"id": "2", "name": "B", "tags": map[string]any{"k": "v"}, "properties": map[string]any{"state": map[string]any{"code": "on"}}},
		{"id": "1", "name": "a", "tags": nil, "properties": map[string]any{}},
	}
	type rows = []map[string]any
	cases := map[string]struct {
		text string
		want rows
	}{
		"AllRows":                       {"Resources | project id", rows{{"id": "2"}, {"id": "1"}}},
		"InOrder":                       {"resources | project id | order by id asc", rows{{"id": "1"}, {"id": "2"}}},
		"WithATag":                      {"resources | where tostring(tags['k']) == 'v' | project id", rows{{"id": "2"}}},
		"ATagIsOfItsCase":               {"resources | where tags['k'] == 'V' | project id", rows{}},
		"IgnoringTheCase":               {"resources | where name =~ 'b' | project id", rows{{"id": "2"}}},
		"OneOfSome":                     {"resources | where name in~ ('A', 'x') and id == '1' | project id", rows{{"id": "1"}}},
		"ADeepPropertyByAnotherName":    {"resources | project id, code = tostring(properties.state.code) | order by id asc", rows{{"id": "1", "code": ""}, {"id": "2", "code": "on"}}},
		"ATextThatLooksLikeAnOperation": {"resources | where name == '| project id' | project id", rows{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q, err := parse(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, q.run(table)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for _, wrong := range []string{"", "tables", "resources where id == '1'", "resources | where id", "resources | where id == 1", "resources | take 5", "resources | project", "resources | where id == '1"} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q is understood", wrong)
		}
	}
}
