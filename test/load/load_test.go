package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]scenario{
		"create=100":               {kind: "create", machines: 100, surge: 10, rest: 2 * time.Minute},
		"roll=50,surge=5,boot=10s": {kind: "roll", machines: 50, surge: 5, boot: 10 * time.Second, rest: 2 * time.Minute},
		"rest=300,for=30s":         {kind: "rest", machines: 300, surge: 10, rest: 30 * time.Second},
		"held=50":                  {kind: "held", machines: 50, surge: 10, rest: 2 * time.Minute, by: "window"},
		"held=50,by=wave,for=1m":   {kind: "held", machines: 50, surge: 10, rest: time.Minute, by: "wave"},
	} {
		if got, err := parse(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"create", "create=0", "create=x", "sleep=1", "roll=1,boot=x", "roll=1,what=1", "held=1,by=magic", "rest=1,by=wave"} {
		if _, err := parse(in); err == nil {
			t.Errorf("%s: no error", in)
		}
	}
}

func TestCountShowsWhoWrote(t *testing.T) {
	line := func(user, verb, resource, code string) string {
		return `{"verb":"` + verb + `","user":{"username":"` + user + `"},"objectRef":{"resource":"` + resource + `"},"responseStatus":{"code":` + code + "}}\n"
	}
	const account = "system:serviceaccount:crossplane-system:"
	log := line(account+"crossplane", "patch", "machines", "200") +
		line(account+"crossplane", "update", "machines", "409") +
		line(account+"crossplane", "create", "events", "201") +
		line(account+"drover-provider-local-0123", "update", "virtualmachines", "200") +
		line(account+"provider-drover", "patch", "machines", "200") +
		line(account+"provider-drover", "create", "secrets", "201") +
		line("system:node:a", "create", "nodes", "201") +
		line("system:bootstrap:abc", "create", "certificatesigningrequests", "201") +
		line("drover-control-plane", "patch", "nodes", "200") +
		line("drover-admin", "create", "machinedeployments", "201") +
		// An entry that the API server is still writing.
		`{"verb":"pat`
	got := map[string]float64{}
	if err := count(strings.NewReader(log), func(group, name string, n float64) {
		if group == groupWrites {
			got[name] += n
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"crossplane": 1, rowRefused: 1, rowEvents: 1, "provider-local": 1, "provider-drover: machines": 1,
		"provider-drover: join tokens": 1, "kubelets": 2, "kubernetes": 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
