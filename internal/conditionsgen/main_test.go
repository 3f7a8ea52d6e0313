package main

import (
	"os"
	"strings"
	"testing"
)

// TestPageIsGenerated fails when a constant was changed and "make generate" was not run.
func TestPageIsGenerated(t *testing.T) {
	all, err := readAll("../../apis")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := readCodes("../../apis")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"../../docs/conditions.md": render(all, codes), "../../docs/reference/reasons.md": renderIndex(all, codes), "../kubectl/advice/zz_generated.reasons.go": string(adviceOf(all))} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the constants: run make generate", file)
		}
	}
}

func TestDescribe(t *testing.T) {
	c := describe("ReasonGone", "Gone", "ReasonGone means that a VM\nis gone.\n  - Kinds: Machine, MachineSet\n  - Do: Look\n    for it.\n")
	if c.text != "A VM is gone." || c.notes["Do"] != "Look for it." || strings.Join(c.kinds(), "+") != "Machine+MachineSet" {
		t.Errorf("got %+v", c)
	}
}

// TestAConstantWithoutKindsIsRefused keeps constants from being left out of each table.
func TestAConstantWithoutKindsIsRefused(t *testing.T) {
	file := t.TempDir() + "/reasons.go"
	if err := os.WriteFile(file, []byte("package v1\n\nconst (\n\t// ReasonGone means that a VM is gone.\n\tReasonGone = \"Gone\"\n)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(file); err == nil || !strings.Contains(err.Error(), `the comment of ReasonGone must have a sentence and an item "Kinds"`) {
		t.Errorf("got %v", err)
	}
}
