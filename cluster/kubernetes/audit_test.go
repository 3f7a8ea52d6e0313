package main

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/audit/policy"
)

func TestAuditPolicyIsOneThatTheAPIServerReads(t *testing.T) {
	l := layout{dir: t.TempDir()}
	for _, level := range auditLevels {
		if err := writeAuditPolicy(l, level); err != nil {
			t.Fatal(err)
		}
		p, err := policy.LoadPolicyFromFile(l.auditPolicy())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.Rules[len(p.Rules)-1].Level); got != level {
			t.Errorf("level %s, want %s", got, level)
		}
	}
	if err := writeAuditPolicy(l, "Verbose"); err == nil || !strings.Contains(err.Error(), `"Verbose"`) {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(l.auditPolicy()); err != nil || !strings.Contains(string(b), "RequestResponse") {
		t.Errorf("what was refused was written: %s, %v", b, err)
	}
}
