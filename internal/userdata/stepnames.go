package userdata

import (
	"regexp"
	"slices"

	"github.com/drover-dev/drover/internal/gzipb64"
)

// stepPath is the path of a step's script, which both formats have as plain text.
var stepPath = regexp.MustCompile(regexp.QuoteMeta(dirSteps) + `/[0-9]{2,3}-([a-z0-9][-a-z0-9]*)`)

// StepNames returns the names of the bootstrap steps in user data, in their order, for any encoding. User data
// that Drover did not write has none.
func StepNames(content string) []string {
	if plain, err := gzipb64.Decode(content); err == nil {
		content = string(plain)
	}
	var out []string
	for _, found := range stepPath.FindAllStringSubmatch(content, -1) {
		if !slices.Contains(out, found[1]) {
			out = append(out, found[1])
		}
	}
	return out
}
