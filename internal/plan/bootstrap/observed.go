package bootstrap

import (
	"time"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// Observed is the input of the planner.
type Observed struct {
	Machine *machinev1alpha1.Machine
	// Class of the Machine, or the problem with it. Neither is needed once VMMayExist is true.
	Class        *machinev1alpha1.MachineClass
	ClassProblem *plan.Problem
	// Profile of the operating system, nil if the class names none.
	Profile *machinev1alpha1.OperatingSystemProfile
	// Config is the Machine's Bootstrap, nil if there is none.
	Config *Config
	// Join is the observed state of the join token and the user data.
	Join plan.JoinState
	// VMMayExist is true from the moment that the provider began to create the VM.
	VMMayExist bool
	// VMLost means that a VM existed, and that its resource does not exist any more.
	VMLost bool
	// NodeJoined is true once the Node has joined.
	NodeJoined bool
}

// Settings of the step.
type Settings struct {
	// TokenTTL is the life of one lease of a join token.
	TokenTTL time.Duration
	// TokenGroups that a join token authenticates as, beside system:bootstrappers.
	TokenGroups []string
	// ExternalCloudProvider and ProviderIDCommand: see the input.
	ExternalCloudProvider bool
	ProviderIDCommand     string
	// Form of the user data that the cloud accepts.
	Form userdata.Form
}

// SettingsOf returns the settings of an input, with its defaults.
func SettingsOf(input *fn.Bootstrap) Settings {
	s := Settings{
		TokenTTL: input.TokenTTL.Duration, TokenGroups: input.TokenGroups,
		ExternalCloudProvider: input.CloudProvider == fn.ExternalCloudProvider,
		ProviderIDCommand:     input.ProviderIDCommand,
		Form:                  userdata.Form{Encoding: input.Encoding, MaxBytes: int(input.MaxUserDataBytes)},
	}
	if s.TokenTTL <= 0 {
		s.TokenTTL = fn.DefaultTokenTTL
	}
	if s.TokenGroups == nil {
		s.TokenGroups = []string{fn.DefaultTokenGroup}
	}
	return s
}
