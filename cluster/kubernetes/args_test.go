package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// The controller manager only logs a controller name that it does not know, so a misspelled
// controller would be off without an error.
func TestEveryControllerIsKnownToTheControllerManager(t *testing.T) {
	known := app.KnownControllers()
	for _, c := range controllers {
		if !slices.Contains(known, c+"-controller") {
			t.Errorf("controller %q is unknown; known are %s", c, strings.Join(known, ", "))
		}
	}
}

func TestEveryFileIsBelowTheDirectory(t *testing.T) {
	l := layout{dir: "/d"}
	for _, args := range [][]string{apiserverArgs(l, 1), auditArgs(l), controllerManagerArgs(l), schedulerArgs(l)} {
		for _, arg := range args {
			name, value, _ := strings.Cut(arg, "=")
			if !strings.HasSuffix(name, "-file") && name != "--kubeconfig" {
				continue
			}
			if !strings.HasPrefix(value, "/d/") {
				t.Errorf("%s is not below the directory", arg)
			}
		}
	}
}
