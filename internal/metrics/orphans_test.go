package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestOrphans(t *testing.T) {
	collector := func(name string, found metav1.ConditionStatus, n int32) *v1alpha1.OrphanCollector {
		c := &v1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.Orphans = n
		if found != "" {
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOrphansFound, Status: found}}
		}
		return c
	}
	some := collector("some", metav1.ConditionTrue, 3)
	all, cl := newCollector(t, some, collector("none", metav1.ConditionFalse, 0), collector("blind", metav1.ConditionUnknown, 2), collector("new", "", 0))
	synced := true
	o := &orphans{views: cl, elected: all.elected, synced: func() bool { return synced }, log: func(err error) { t.Error(err) }}
	if err := testutil.CollectAndCompare(o, strings.NewReader(`
# HELP drover_orphan_vms VMs without a Machine, by the OrphanCollector that found them; absent while the number is unknown.
# TYPE drover_orphan_vms gauge
drover_orphan_vms{name="none"} 0
drover_orphan_vms{name="some"} 3
`)); err != nil {
		t.Error(err)
	}
	if err := cl.Delete(t.Context(), some); err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(o); n != 1 {
		t.Errorf("%d series, want 1", n)
	}
	synced = false
	if n := testutil.CollectAndCount(o); n != 0 {
		t.Errorf("%d series before the cache is there", n)
	}
	synced, o.elected = true, make(chan struct{})
	if n := testutil.CollectAndCount(o); n != 0 {
		t.Errorf("%d series of one that does not lead", n)
	}
}
