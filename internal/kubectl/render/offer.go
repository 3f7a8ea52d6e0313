package render

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drover-dev/drover/internal/plan/offer"
)

// Offers of all Compositions, as a table of classes and the limits of each.
func (s Screen) Offers(all []offer.Offer) string {
	out := &strings.Builder{}
	for i, o := range all {
		if i > 0 {
			out.WriteString("\n")
		}
		if len(all) > 1 {
			fmt.Fprintf(out, "%s\n", s.bold("Composition "+o.Composition))
		}
		t := table{rows: [][]string{{"CLASS", "SIZE", "CAPACITY", "MAX SIZE", "FAILURE DOMAINS"}}}
		for _, c := range o.Classes {
			domains := make([]string, 0, len(c.FailureDomains))
			for _, d := range c.FailureDomains {
				domains = append(domains, string(d))
			}
			t.rows = append(t.rows, []string{
				clean(c.Name), cmp.Or(clean(c.Size), "-"), cmp.Or(c.String(), "-"), fmt.Sprint(c.MaxSize), cmp.Or(clean(strings.Join(domains, ", ")), "the class decides"),
			})
		}
		s.table(out, t)
		for _, line := range [][2]string{
			{"Versions:", clean(strings.Join(o.Versions, ", ")) + "; the first one is the default"},
			{"Largest pool:", fmt.Sprintf("%d Nodes", o.MaxSize)},
			{"Cluster:", clean(o.ClusterRef.Kind + " " + o.ClusterRef.Name)},
		} {
			fmt.Fprintln(out, s.labeled(0, line[0], line[1], s.dim))
		}
		if o.NotAllowed > 0 {
			fmt.Fprintln(out, s.wrap(0, fmt.Sprintf("Further classes, which do not exist or do not allow this namespace: %d", o.NotAllowed)))
		}
	}
	return out.String()
}
