package metrics

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-dev/drover/internal/undecoded"
)

var descLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)

// TestTheReferenceHasEachMetricWithItsLabels compares the page, which is made from the source, with
// the descriptions of the collectors.
func TestTheReferenceHasEachMetricWithItsLabels(t *testing.T) {
	c, _ := newCollector(t)
	descs := make(chan *prometheus.Desc, 100)
	c.Describe(descs)
	(&orphans{}).Describe(descs)
	undecoded.Describe(descs)
	close(descs)
	page, all := read(t, "docs/reference/metrics.md"), 0
	for d := range descs {
		all++
		labels := strings.ReplaceAll(descLabels.FindStringSubmatch(d.String())[1], ",", "`, `")
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\| [a-z]+ \\| `%s` \\|", descName.FindStringSubmatch(d.String())[1], labels))
		if !row.MatchString(page) {
			t.Errorf("docs/reference/metrics.md has no row %s", row)
		}
	}
	if rows := strings.Count(page, "\n| `drover_") - strings.Count(page, "\n| `drover_function_"); rows != all {
		t.Errorf("docs/reference/metrics.md has %d metrics of provider-drover, there are %d", rows, all)
	}
}
