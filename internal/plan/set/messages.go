package set

import (
	"fmt"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// mostListed is how many Machines an event names; the remaining ones are only counted.
const mostListed = 10

func list(each []string) string {
	noun := "Machine "
	if len(each) > 1 {
		noun = fmt.Sprintf("%d Machines: ", len(each))
	}
	if len(each) > mostListed {
		each = append(each[:mostListed:mostListed], fmt.Sprintf("and %d more", len(each)-mostListed))
	}
	return noun + strings.Join(each, ", ")
}

func text(code, message string) string {
	if message == "" {
		return code
	}
	return code + ": " + message
}

func version(t machinev1alpha1.MachineSpec) string {
	return fmt.Sprintf("version %s of class %q", t.Version, t.ClassRef.Key())
}

func inDomain(domain string) string {
	if domain == "" {
		return "The failure domain of the class"
	}
	return fmt.Sprintf("Failure domain %q", domain)
}
