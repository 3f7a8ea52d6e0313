package clouds

import (
	"strings"
	"testing"
	"testing/fstest"
)

const entry = `
title: Example Cloud
frame: Native
package: Virtual machines of Example Cloud.
configuration: {secret: Its value is a token.}
`

func readOne(entry string) (Cloud, error) {
	all, err := Read(fstest.MapFS{"example/cloud.yaml": {Data: []byte(entry)}, "machine/v1alpha1/doc.go": {}})
	if err != nil || len(all) != 1 {
		return Cloud{}, err
	}
	return all[0], nil
}

func TestWhatFollowsFromAnEntry(t *testing.T) {
	c, err := readOne(entry)
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "example" || c.Group() != "example.drover.dev" || c.Provider() != "provider-example" || c.Page != "example.md" {
		t.Errorf("%+v", c)
	}
	if !c.IsGuarded() || !c.HasNamespacedConfigurations() {
		t.Error("the kinds of Drover's own provider are guarded, and have a ProviderConfig")
	}
	if c.Configuration.Account != "Example Cloud" || c.Configuration.SecretRef != "the credentials" {
		t.Errorf("%+v", c.Configuration)
	}
	c, err = readOne("title: AWS\nframe: Published\nconfiguration: {secret: Its value is a token.}\nvms: {group: ec2.example.org, resource: instances}\n")
	if err != nil || c.IsGuarded() || c.HasNamespacedConfigurations() || c.Provider() != "provider-inventory" {
		t.Errorf("a cloud of another project's provider: %+v, %v", c, err)
	}
}

func TestAnEntryThatIsWrong(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"AFieldThatDoesNotExist":         {"frame:", "farme: Own\nframe:", `unknown field "farme"`},
		"NoTitle":                        {"title: Example Cloud", "", "title: must not be empty"},
		"AFrameThatDoesNotExist":         {"Native", "Foreign", `frame: invalid value "Foreign": must be one of [Native Lifted Own Published]`},
		"NoTextOfThePackage":             {"package: Virtual machines of Example Cloud.", "", "package: must be set unless frame is Published"},
		"NoConfiguration":                {"configuration: {secret: Its value is a token.}", "", "configuration: must be set unless frame is Own"},
		"NoDescriptionOfTheSecret":       {"secret: Its value is a token.", "account: a project", "configuration.secret: must not be empty"},
		"TheVMsOfAnotherProject":         {"frame:", "vms: {group: a, resource: b}\nframe:", "vms: must be set if frame is Published, and only then"},
		"ACellThatWouldEndItsTable":      {"frame:", "docs: {console: a | b}\nframe:", "docs.console: must be a cell of a table: one line without |"},
		"ACellOfSeveralLines":            {"frame:", "docs: {capacity: \"a\\nb\"}\nframe:", "docs.capacity: must be a cell of a table"},
		"AnExcuseThatIsNoReasonInAField": {"frame:", "conformance: {excused: [Allocation]}\nframe:", "conformance.excused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := readOne(strings.Replace(entry, tc.old, tc.new, 1))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "apis/example/cloud.yaml") {
				t.Errorf("%v, want %q of apis/example/cloud.yaml", err, tc.want)
			}
		})
	}
}
