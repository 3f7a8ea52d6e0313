package userdata

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// The settings that a kubelet needs on every operating system.
const (
	pathResolvConf = "/etc/kubernetes/resolv.conf"

	modules = "overlay\nbr_netfilter\n"

	// A value that a kernel does not have is ignored if the line starts with a -.
	sysctls = `net.ipv4.ip_forward = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
-net.ipv6.conf.all.forwarding = 1
-net.ipv6.conf.all.accept_ra = 2
-net.ipv6.conf.default.accept_ra = 2
fs.inotify.max_user_instances = 8192
fs.inotify.max_user_watches = 524288
vm.overcommit_memory = 1
vm.panic_on_oom = 0
kernel.panic = 10
kernel.panic_on_oops = 1
-kernel.keys.root_maxkeys = 1000000
-kernel.keys.root_maxbytes = 25000000
`

	journal = "[Journal]\nSystemMaxUse=500M\n"
)

// prepareSystem is the first step of a VM with a profile.
//
//go:embed scripts/prepare.sh
var prepareSystem string

// applyProfile adds the steps that the operating system needs before a machine can join.
func (d *draft) applyProfile(in Input) field.ErrorList {
	p := in.Profile.Spec
	at := field.NewPath("profile", "spec")
	release, err := releaseFor(p.Containerd, in.Version, field.NewPath("spec", "version"))
	if err != nil {
		return field.ErrorList{err}
	}
	parameters, errs := parametersOf(p.Parameters, in.Parameters, field.NewPath("class", "spec", "operatingSystem", "parameters"))
	errs = append(errs, checkFiles(p.Files, at.Child("files"), "")...)
	errs = append(errs, checkUnits(p.Units, at.Child("units"))...)
	errs = append(errs, checkSteps(p.Steps, at.Child("steps"))...)
	errs = append(errs, checkPaths(p, at)...)
	if len(errs) > 0 {
		return errs
	}

	d.Files = append(d.Files,
		File{Path: "/etc/modules-load.d/drover.conf", Content: modules},
		File{Path: "/etc/sysctl.d/90-drover.conf", Content: sysctls},
		File{Path: "/etc/systemd/journald.conf.d/drover.conf", Content: journal},
		File{Path: pathContainerdConfig, Content: containerdConfig(release.Major, in.Settings.SandboxImage)},
	)
	for _, f := range p.Files {
		d.Files = append(d.Files, fileOf(f))
	}
	for _, u := range p.Units {
		d.Units = append(d.Units, unitOf(u))
	}
	d.prepare = []Step{{Name: "prepare", Script: prepareSystem}}
	d.profile = stepsOf(p.Steps)
	if release.Download != nil {
		d.Units = append(d.Units, Unit{Name: containerdUnitName, Content: containerdUnit})
		d.Environment["CONTAINERD_URL"] = strings.TrimRight(release.Download.URL, "/")
		d.Environment["CONTAINERD_VERSION"] = release.Download.Version
		install := Step{Name: "install-containerd", Script: installContainerd}
		if len(in.Settings.ContainerdDigests) > 0 {
			install.Script = unpackContainerd
		}
		d.runtime = append(d.runtime, install)
	}
	d.runtime = append(d.runtime, Step{Name: "start-containerd", Script: startContainerd})
	d.Environment["CONTAINERD_MAJOR"] = strconv.Itoa(int(release.Major))
	d.Environment["RESOLV_CONF"] = pathResolvConf
	maps.Copy(d.Environment, parameters)
	d.containerd = release.Download
	return nil
}

// checkPaths checks the paths of a profile, except those of its files.
func checkPaths(p machinev1alpha1.OperatingSystemProfileSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(file string, at *field.Path) {
		if err := checkPath(file, at); err != nil {
			errs = append(errs, err)
		}
	}
	if p.Trust != nil {
		check(p.Trust.Directory, at.Child("trust", "directory"))
	}
	for i, s := range p.TimeServices {
		check(s.Path, at.Child("timeServices").Index(i).Child("path"))
	}
	for i, u := range p.ProxyUnits {
		if err := checkUnitName(u, at.Child("proxyUnits").Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// fileOf returns the file of an object that checkFiles has accepted.
func fileOf(f machinev1alpha1.MachineFile) File {
	mode, _ := strconv.ParseInt(f.Mode, 8, 32)
	return File{Path: f.Path, Content: f.Content, Mode: int(mode)}
}

func unitOf(u machinev1alpha1.MachineUnit) Unit {
	out := Unit{Name: u.Name, Content: u.Content, Enabled: u.Enabled}
	for _, drop := range u.DropIns {
		out.DropIns = append(out.DropIns, DropIn(drop))
	}
	return out
}

func stepsOf(steps []machinev1alpha1.MachineStep) []Step {
	var out []Step
	for _, s := range steps {
		out = append(out, Step{Name: s.Name, Script: s.Script})
	}
	return out
}

// parametersOf returns the parameters of a profile as environment variables: the values of the class, or the
// defaults.
func parametersOf(schema map[string]machinev1alpha1.ProfileParameter, values map[string]string, at *field.Path) (map[string]string, field.ErrorList) {
	var errs field.ErrorList
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if _, ok := schema[name]; !ok {
			errs = append(errs, field.NotSupported(at, name, slices.Sorted(maps.Keys(schema))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		p := schema[name]
		if !parameterName.MatchString(name) {
			errs = append(errs, field.Invalid(field.NewPath("profile", "spec", "parameters"), name, "must be in camelCase, of at most 63 letters and digits"))
			continue
		}
		value, isSet := values[name]
		switch {
		case !isSet && p.Default == nil:
			errs = append(errs, field.Required(at.Key(name), "the profile has no default for it"))
			continue
		case !isSet:
			value = *p.Default
		}
		if err := checkParameter(p, value, at.Key(name)); err != nil {
			errs = append(errs, err)
			continue
		}
		variable := VariableOf(name)
		if _, ok := out[variable]; ok {
			errs = append(errs, field.Duplicate(field.NewPath("profile", "spec", "parameters").Key(name), variable))
		}
		out[variable] = value
	}
	return out, errs
}

var parameterName = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,62}$`)

var upper = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// VariableOf returns the environment variable of a parameter in steps.
func VariableOf(parameter string) string {
	return "PARAMETER_" + strings.ToUpper(upper.ReplaceAllString(parameter, "${1}_${2}"))
}

func checkParameter(p machinev1alpha1.ProfileParameter, value string, at *field.Path) *field.Error {
	if strings.ContainsFunc(value, isControl) {
		return field.Invalid(at, value, "must have no control characters")
	}
	if err := checkContent(value, at); err != nil {
		return err
	}
	switch p.Type {
	case machinev1alpha1.IntegerParameter:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return field.Invalid(at, value, "must be an integer")
		}
	case machinev1alpha1.BooleanParameter:
		if value != "true" && value != "false" {
			return field.NotSupported(at, value, []string{"true", "false"})
		}
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, value) {
		return field.NotSupported(at, value, p.Enum)
	}
	if p.Pattern != "" {
		r, err := regexp.Compile(`^(?:` + p.Pattern + `)$`)
		if err != nil {
			return field.Invalid(at, value, fmt.Sprintf("the pattern of the profile is no regular expression: %v", err))
		}
		if !r.MatchString(value) {
			return field.Invalid(at, value, fmt.Sprintf("must match %q", p.Pattern))
		}
	}
	return nil
}

// reserved folders hold the files by which a machine joins. Only Drover writes them, so that a profile can
// neither omit nor break them.
var reserved = []string{"/etc/kubernetes", "/var/lib/kubelet", "/opt/drover", "/etc/drover", "/var/lib/drover"}

// reservedFiles besides these folders.
var reservedFiles = []string{pathKubeletFlags, pathContainerdConfig, "/etc/hostname"}

// reservedUnits are Drover's own.
var reservedUnits = []string{kubeletUnitName, bootstrapUnitName}

// checkFiles checks the files of a profile or a class. One reserved file may be excepted.
func checkFiles(files []machinev1alpha1.MachineFile, at *field.Path, except string) field.ErrorList {
	var errs field.ErrorList
	for i, f := range files {
		p := at.Index(i)
		if err := checkPath(f.Path, p.Child("path")); err != nil && f.Path != except {
			errs = append(errs, err)
		}
		if f.Mode != "" {
			if mode, err := strconv.ParseInt(f.Mode, 8, 32); err != nil || mode < 1 || mode > 0o777 {
				errs = append(errs, field.Invalid(p.Child("mode"), f.Mode, "must be permissions in octal, like 0644"))
			}
		}
		if err := checkContent(f.Content, p.Child("content")); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// checkPath checks the path of a file that Drover does not write itself.
func checkPath(file string, at *field.Path) *field.Error {
	switch {
	case !path.IsAbs(file) || path.Clean(file) != file || file == "/" || strings.ContainsFunc(file, isControl):
		return field.Invalid(at, file, "must be an absolute path without . and ..")
	case isReserved(file):
		return field.Forbidden(at, file+" is one of the files by which a machine joins, which Drover writes")
	}
	return nil
}

// isReserved reports whether a file is one of Drover's own, or changes a unit of Drover.
func isReserved(file string) bool {
	below := func(dir string) bool { return file == dir || strings.HasPrefix(file, dir+"/") }
	ofUnit := func(unit string) bool {
		return path.Base(file) == unit || path.Base(path.Dir(file)) == unit+".d"
	}
	return slices.ContainsFunc(reserved, below) || slices.Contains(reservedFiles, file) || slices.ContainsFunc(reservedUnits, ofUnit)
}

var unitName = regexp.MustCompile(`^[A-Za-z0-9:_.@-]+\.(service|socket|timer|mount|path|target|slice)$`)

func checkUnits(units []machinev1alpha1.MachineUnit, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, u := range units {
		p := at.Index(i)
		if err := checkUnitName(u.Name, p.Child("name")); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, checkUnitContent(u.Content, u.Enabled, p.Child("content"))...)
		for j, d := range u.DropIns {
			if !strings.HasSuffix(d.Name, ".conf") || strings.ContainsAny(d.Name, "/ \t\r\n") {
				errs = append(errs, field.Invalid(p.Child("dropIns").Index(j).Child("name"), d.Name, "must be a file name that ends with .conf"))
			}
			errs = append(errs, checkUnitContent(d.Content, false, p.Child("dropIns").Index(j).Child("content"))...)
		}
	}
	return errs
}

// checkUnitContent checks a unit as Ignition does at the first boot, which stops for an invalid unit. systemd
// does not start an enabled unit that no target wants.
func checkUnitContent(content string, enabled bool, at *field.Path) field.ErrorList {
	if err := checkContent(content, at); err != nil {
		return field.ErrorList{err}
	}
	options, err := unit.DeserializeOptions(strings.NewReader(content))
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("must be a unit of systemd: %v", err))}
	}
	isInstall := func(o *unit.UnitOption) bool { return o.Section == "Install" }
	if enabled && content != "" && !slices.ContainsFunc(options, isInstall) {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, "must have a section [Install], because the unit is enabled: nothing would start it")}
	}
	return nil
}

func checkUnitName(name string, at *field.Path) *field.Error {
	switch {
	case !unitName.MatchString(name):
		return field.Invalid(at, name, "must be the name of a unit of systemd, with its suffix")
	case slices.Contains(reservedUnits, name):
		return field.Forbidden(at, "Drover writes the unit "+name)
	}
	return nil
}

var stepName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func checkSteps(steps []machinev1alpha1.MachineStep, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, s := range steps {
		p := at.Index(i)
		if !stepName.MatchString(s.Name) {
			errs = append(errs, field.Invalid(p.Child("name"), s.Name, "must be lower case letters, digits and dashes"))
		}
		if !strings.HasPrefix(s.Script, "#!/") {
			errs = append(errs, field.Invalid(p.Child("script"), field.OmitValueType{}, "its first line must name an interpreter, like #!/bin/sh"))
		}
		if err := checkContent(s.Script, p.Child("script")); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// checkContent refuses placeholders: the text of a user must not become a token, not even by accident. A
// carriage return would not survive YAML.
func checkContent(content string, at *field.Path) *field.Error {
	for _, p := range placeholders {
		for _, form := range []string{p, escape(p)} {
			if strings.Contains(content, form) {
				return field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("must not have %s, which stands for a value that only Drover fills in", form))
			}
		}
	}
	if strings.ContainsFunc(content, isControl) {
		return field.Invalid(at, field.OmitValueType{}, "must have no control characters except tabs and line feeds")
	}
	return nil
}
