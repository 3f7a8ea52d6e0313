package bootstrap

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A Config is the observed state of a Machine's Bootstrap: the user data that a bootstrap provider of Cluster API makes.
type Config struct {
	UID types.UID
	// SecretName is that of the Secret with the user data.
	SecretName string
	// Ready means that the Secret has the user data.
	Ready bool
	// Problem that a user must fix, with a reason and a message of the provider. Nil if there is none.
	Problem *plan.Problem
	// Waiting is the cause for which there is no user data yet, and Error the one for which the provider cannot find that
	// out.
	Waiting, Error string
}

// ofConfig returns the user data that a bootstrap provider made, or the cause for which there is none.
func ofConfig(class *machinev1alpha1.MachineClass, c *Config) (*plan.OwnUserData, *plan.Problem) {
	if c == nil || !c.Ready {
		if c != nil && c.Problem != nil {
			return nil, &plan.Problem{Reason: c.reason(), Message: fmt.Sprintf("class %q: spec.userData.bootstrapTemplateRef: %s", class.Reference().Key(), c.Problem.Message)}
		}
		return nil, nil
	}
	return &plan.OwnUserData{SecretName: c.SecretName, Key: machinev1alpha1.UserDataKeyClusterAPI, Format: class.Spec.OperatingSystem.Provisioning, Bootstrap: c.UID}, nil
}

// reason of the problem. A status can have any text, and reasons are those of the API.
func (c *Config) reason() string {
	if c.Problem.Reason == machinev1alpha1.ReasonBootstrapTemplateInvalid {
		return c.Problem.Reason
	}
	return machinev1alpha1.ReasonBootstrapConfigFailed
}

// waitsFor describes the state of a bootstrap provider that has not made the user data.
func (c *Config) waitsFor() string {
	switch {
	case c == nil:
		return "waiting for the user data of the bootstrap provider"
	case c.Error != "":
		return "waiting for the user data of the bootstrap provider: " + c.Error
	case c.Waiting != "":
		return c.Waiting
	}
	return "waiting for the user data of the bootstrap provider"
}
