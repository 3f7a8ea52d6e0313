package conformance

import "github.com/drover-dev/drover/internal/clouds"

// An entry is the name of a cloud whose provider is Drover's: apis/NAME/cloud.yaml has what the suite must know of it.
// Types of such clouds embed it.
type entry string

func (e entry) Provider() string          { return string(e) }
func (entry) Backing() Backing            { return fakedAPI }
func (e entry) Cannot() map[string]string { return e.cloud().Conformance.Excused }

// LacksSoftReboot reports whether the cloud can only reset VMs.
func (e entry) LacksSoftReboot() bool { return e.cloud().Conformance.HardRebootOnly }

// IsOnlyInLong reports whether the short form leaves the cloud out.
func (e entry) IsOnlyInLong() bool {
	return e.cloud().Frame == clouds.Native && !rebootsAt[string(e)]
}

func (e entry) cloud() clouds.Cloud { return clouds.Named(string(e)) }
