package simulator

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestAVMIsFoundAtItsPlaceOnly(t *testing.T) {
	d := &Description{}
	if err := yaml.UnmarshalStrict([]byte(good), d); err != nil {
		t.Fatal(err)
	}
	d.Resources[0].Place = "{{ .vm.spec.forProvider.zone }}"
	c := newCloud(d, nil, nil)
	id, err := c.addVM("fleet", "web", nil, map[string]any{"zone": "a"})
	if err != nil {
		t.Fatal(err)
	}
	vms := c.vms("fleet")
	if len(vms) != 1 || vms[0].ID != id || vms[0].State != Running || vms[0].CreatedAt.IsZero() {
		t.Errorf("VMs %+v", vms)
	}
	for place, found := range map[string]bool{"a": true, "b": false, "": false} {
		seen, err := c.observe(c.VM(), id, place)
		if err != nil || (seen != nil) != found {
			t.Errorf("at %q: %v, %v", place, seen, err)
		}
	}
	for _, place := range []string{"b", "a"} {
		if err := c.remove(t.Context(), c.VM(), id, place); err != nil {
			t.Error(err)
		}
		if left := len(c.vms("fleet")); (left == 0) != (place == "a") {
			t.Errorf("removed at %q: %d VMs are left", place, left)
		}
	}
	if _, err := c.addVM("fleet", "web", nil, nil); err == nil {
		t.Error("a VM without a place is added")
	}
}
