package userdata

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// timeScript restarts the time service that the image has.
//
//go:embed scripts/time.sh
var timeScript string

var ntpServer = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`)

// applyTime writes the NTP servers for each time service that images of the profile may
// have.
func (d *draft) applyTime(in Input, at *field.Path) field.ErrorList {
	at = at.Child("ntpServers")
	if len(in.Settings.NTPServers) == 0 {
		return nil
	}
	if in.Profile == nil {
		return needsProfile(at, "without one Drover does not know the time service of the image")
	}
	services := in.Profile.Spec.TimeServices
	if len(services) == 0 {
		return field.ErrorList{field.Forbidden(at, "the profile does not state in profile.spec.timeServices which time services images have")}
	}
	var errs field.ErrorList
	for i, s := range in.Settings.NTPServers {
		if !ntpServer.MatchString(s) {
			errs = append(errs, field.Invalid(at.Index(i), s, "must be a host name or an address"))
		}
	}
	var units []string
	for _, s := range services {
		if err := d.addFile(File{Path: s.Path, Content: timeConfig(s.Format, in.Settings.NTPServers)}, at); err != nil {
			errs = append(errs, err)
		}
		units = append(units, s.Unit)
	}
	d.Environment["TIME_UNITS"] = strings.Join(units, " ")
	d.prepared = append(d.prepared, Step{Name: "time", Script: timeScript})
	return errs
}

// timeConfig returns the configuration of a service.
func timeConfig(format machinev1alpha1.TimeServiceFormat, servers []string) string {
	if format == machinev1alpha1.Timesyncd {
		return "[Time]\nNTP=" + strings.Join(servers, " ") + "\nFallbackNTP=\n"
	}
	b := strings.Builder{}
	for _, s := range servers {
		fmt.Fprintf(&b, "server %s iburst\n", s)
	}
	// After a suspension of the VM, the clock is set at once.
	b.WriteString("driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\n")
	return b.String()
}
