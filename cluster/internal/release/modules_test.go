package release

import (
	"runtime/debug"
	"testing"
)

func TestAReleaseContainsPublishedModulesAndItsRepository(t *testing.T) {
	published := &debug.Module{Path: "example.org/fork", Version: "v1.0.0", Sum: "h1:fork"}
	cases := map[string]struct {
		replace *debug.Module
		// program is the folder of the program's own module in the repository.
		program string
		// want is the module that is listed, "" for none, and "error" for a refusal.
		want string
	}{
		"a module is listed": {want: "example.org/m@v1.2.3"},
		"a module that replaces another is listed in its place":  {replace: published, want: "example.org/fork@v1.0.0"},
		"a folder of the repository is part of the release":      {replace: &debug.Module{Path: "./compat/m", Version: "(devel)"}, want: ""},
		"a folder beside the repository is refused":              {replace: &debug.Module{Path: "../m", Version: "(devel)"}, want: "error"},
		"a folder that leaves the repository later on, likewise": {replace: &debug.Module{Path: "./a/../../m", Version: "(devel)"}, want: "error"},
		"a folder above a nested module is of the repository":    {replace: &debug.Module{Path: "../..", Version: "(devel)"}, program: "/cluster/cloud", want: ""},
		"a folder above the repository is refused":               {replace: &debug.Module{Path: "../../../m", Version: "(devel)"}, program: "/cluster/cloud", want: "error"},
		"a folder with an absolute path is refused":              {replace: &debug.Module{Path: "/home/m", Version: "(devel)"}, want: "error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := &debug.Module{Path: "example.org/m", Version: "v1.2.3", Sum: "h1:m", Replace: c.replace}
			got := ""
			if !isOfRepository(repositoryPath+c.program, d) {
				m, err := linked(d)
				got = m.String()
				if err != nil {
					got = "error"
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
