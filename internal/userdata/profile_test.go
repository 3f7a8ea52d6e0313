package userdata

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
)

func withProfile(name string) func(*Input) {
	return func(in *Input) { in.Profile = osprofile.BuiltIn(name) }
}

func TestDocumentsOfBuiltInProfilesAreThoseOfTheGoldenFiles(t *testing.T) {
	for _, name := range osprofile.Names() {
		for _, format := range osprofile.BuiltIn(name).Spec.Formats {
			t.Run(name+"/"+string(format), func(t *testing.T) {
				compareGolden(t, name+endings[format], encoded(t, document(t, input(withProfile(name))), format))
			})
		}
	}
}

const allSettingsSuffix = ", all settings"

// TestEveryBuiltInProfileFitsEveryCloud writes the sizes to a table, so that a change shows its cost.
func TestEveryBuiltInProfileFitsEveryCloud(t *testing.T) {
	compositions, err := filepath.Glob("../../apis/machine/compositions/machine-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := strings.Builder{}
	var names []string
	for _, name := range append([]string{"no profile"}, osprofile.Names()...) {
		names = append(names, name, name+allSettingsSuffix)
	}
	for _, name := range names {
		in, formats := input(), []machinev1alpha1.ProvisioningFormat{machinev1alpha1.CloudInit, machinev1alpha1.Ignition}
		plain, hasSettings := strings.CutSuffix(name, allSettingsSuffix)
		p := osprofile.BuiltIn(plain)
		switch {
		case hasSettings && p == nil:
			withSettings(withoutProfileSettings)(&in)
		case hasSettings:
			withSettings()(&in)
		}
		if p != nil {
			in.Profile, formats = p, p.Spec.Formats
		}
		for _, file := range compositions {
			settings := bootstrapInput(t, file)
			in.ProviderIDCommand, in.ExternalCloudProvider = settings.ProviderIDCommand, settings.CloudProvider == fn.ExternalCloudProvider
			form := Form{Encoding: settings.Encoding, MaxBytes: int(settings.MaxUserDataBytes)}
			d := document(t, in)
			for _, format := range formats {
				template := string(encoded(t, d, format))
				size, err := form.SizeOf(template)
				if err != nil {
					t.Fatal(err)
				}
				cloud := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "machine-"), ".yaml")
				fmt.Fprintf(&b, "%-36s %-9s %-12s %6d of %6d\n", name, format, cloud, size, form.MaxBytes)
				if form.MaxBytes == 0 {
					t.Errorf("%s: the input Bootstrap has no maxUserDataBytes", file)
				}
				if err := d.CheckSize(template, form); err != nil {
					t.Errorf("%s, %s, %s: %v", name, format, cloud, err)
				}
			}
		}
	}
	compareGolden(t, "sizes.txt", []byte(b.String()))
}

// bootstrapInput of a Composition.
func bootstrapInput(t *testing.T, file string) fn.Bootstrap {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	composition := struct {
		Spec struct {
			Pipeline []struct {
				Step  string       `json:"step"`
				Input fn.Bootstrap `json:"input"`
			} `json:"pipeline"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(b, &composition); err != nil {
		t.Fatal(err)
	}
	return composition.Spec.Pipeline[0].Input
}

func TestAProfilePreparesTheMachineBeforeItJoins(t *testing.T) {
	cases := map[string]struct {
		reason  string
		profile string
		version string
		steps   []string
		major   string
	}{
		"Packaged":   {"Kubernetes 1.35 works with the containerd of the distribution.", "debian-12-v1", "v1.35.4", []string{"prepare", "packages", "start-containerd", "install-kubelet", "start-kubelet"}, "1"},
		"Downloaded": {"Kubernetes 1.36 needs containerd 2, which the distribution does not have.", "debian-12-v1", "v1.36.0", []string{"prepare", "packages", "install-containerd", "start-containerd", "install-kubelet", "start-kubelet"}, "2"},
		"InTheImage": {"Flatcar has containerd 2.", "flatcar-v1", "v1.35.4", []string{"prepare", "system", "start-containerd", "install-kubelet", "start-kubelet"}, "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := document(t, input(withProfile(tc.profile), func(in *Input) { in.Version = tc.version }))
			var steps []string
			for _, s := range d.Steps {
				steps = append(steps, s.Name)
			}
			if !slices.Equal(steps, tc.steps) || d.Environment["CONTAINERD_MAJOR"] != tc.major {
				t.Errorf("%s\nsteps %q, want %q; containerd %s, want %s", tc.reason, steps, tc.steps, d.Environment["CONTAINERD_MAJOR"], tc.major)
			}
			i := slices.IndexFunc(d.Files, func(f File) bool { return f.Path == pathContainerdConfig })
			shape := map[string]string{"1": "version = 2\n", "2": "version = 3\n"}[tc.major]
			if config := d.Files[i].Content; !strings.HasPrefix(config, shape) || !strings.Contains(config, "SystemdCgroup = true") {
				t.Errorf("containerd %s has the configuration %s", tc.major, config)
			}
		})
	}
}

// profile that joins, with a change.
func profile(change func(*machinev1alpha1.OperatingSystemProfileSpec)) func(*Input) {
	p := &machinev1alpha1.OperatingSystemProfile{Spec: machinev1alpha1.OperatingSystemProfileSpec{
		Formats:    []machinev1alpha1.ProvisioningFormat{machinev1alpha1.CloudInit},
		Containerd: []machinev1alpha1.ContainerdRelease{{Major: 2}},
		Parameters: map[string]machinev1alpha1.ProfileParameter{"mirrorHost": {Default: ptr.To("a.example.org"), Pattern: `[a-z.]+`}},
		Files:      []machinev1alpha1.MachineFile{{Path: "/etc/motd", Content: "hello\n", Mode: "0600"}},
		Units:      []machinev1alpha1.MachineUnit{{Name: "a.service", Content: "[Service]\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n", Enabled: true}},
		Steps:      []machinev1alpha1.MachineStep{{Name: "a", Script: "#!/bin/sh\n"}},
	}}
	change(&p.Spec)
	return func(in *Input) { in.Profile = osprofile.Defaulted(p) }
}

func TestABadProfileIsNamed(t *testing.T) {
	type spec = machinev1alpha1.OperatingSystemProfileSpec
	file := func(path string) func(*spec) { return func(s *spec) { s.Files[0].Path = path } }
	cases := map[string]struct {
		change func(*spec)
		values map[string]string
		want   string
	}{
		"AFileOfTheJoin":      {file("/etc/kubernetes/bootstrap-kubelet.conf"), nil, "profile.spec.files[0].path: Forbidden"},
		"TheKubeletsFlags":    {file("/etc/default/kubelet"), nil, "profile.spec.files[0].path: Forbidden"},
		"AStep":               {file("/opt/drover/bin/steps/00-a"), nil, "profile.spec.files[0].path: Forbidden"},
		"AStamp":              {file("/var/lib/drover/steps/00-a"), nil, "profile.spec.files[0].path: Forbidden"},
		"ADropInOfTheKubelet": {file("/etc/systemd/system/kubelet.service.d/a.conf"), nil, "profile.spec.files[0].path: Forbidden"},
		"TheKubeletsUnit":     {file("/usr/lib/systemd/system/kubelet.service"), nil, "profile.spec.files[0].path: Forbidden"},
		"AWayAround":          {file("/etc/x/../kubernetes/a"), nil, "profile.spec.files[0].path: Invalid value"},
		"ARelativePath":       {file("etc/motd"), nil, "profile.spec.files[0].path: Invalid value"},
		"AMode":               {func(s *spec) { s.Files[0].Mode = "rw" }, nil, "profile.spec.files[0].mode: Invalid value"},
		"AToken":              {func(s *spec) { s.Files[0].Content = "$(token)" }, nil, "profile.spec.files[0].content: Invalid value: must not have $(token)"},
		"AnEscapedToken":      {func(s *spec) { s.Steps[0].Script = "#!/bin/sh\necho '%24(token)'\n" }, nil, "profile.spec.steps[0].script: Invalid value: must not have %24(token)"},
		"ATokenInAUnit":       {func(s *spec) { s.Units[0].Content = "$(server)" }, nil, "profile.spec.units[0].content"},
		"ATokenInADropIn": {func(s *spec) {
			s.Units[0].DropIns = []machinev1alpha1.UnitDropIn{{Name: "a.conf", Content: "$(server)"}}
		}, nil, "profile.spec.units[0].dropIns[0].content"},
		"TheUnitOfTheKubelet":     {func(s *spec) { s.Units[0].Name = "kubelet.service" }, nil, "profile.spec.units[0].name: Forbidden"},
		"NoInterpreter":           {func(s *spec) { s.Steps[0].Script = "echo" }, nil, "profile.spec.steps[0].script"},
		"AStepOutsideItsFolder":   {func(s *spec) { s.Steps[0].Name = "../a" }, nil, "profile.spec.steps[0].name"},
		"AnUnknownParameter":      {func(*spec) {}, map[string]string{"mirror": "x"}, `class.spec.operatingSystem.parameters: Unsupported value: "mirror": supported values: "mirrorHost"`},
		"AValueThatDoesNotMatch":  {func(*spec) {}, map[string]string{"mirrorHost": "x; reboot"}, `class.spec.operatingSystem.parameters[mirrorHost]: Invalid value: "x; reboot": must match "[a-z.]+"`},
		"AValueWithAPlaceholder":  {func(s *spec) { s.Parameters["mirrorHost"] = machinev1alpha1.ProfileParameter{} }, map[string]string{"mirrorHost": "$(token)"}, "class.spec.operatingSystem.parameters[mirrorHost]"},
		"ANameOfAVariable":        {func(s *spec) { s.Parameters["A=b"] = machinev1alpha1.ProfileParameter{} }, nil, `profile.spec.parameters: Invalid value: "A=b"`},
		"AMissingValue":           {func(s *spec) { s.Parameters["mirrorHost"] = machinev1alpha1.ProfileParameter{} }, nil, "class.spec.operatingSystem.parameters[mirrorHost]: Required value"},
		"NoInteger":               {func(s *spec) { s.Parameters["mirrorHost"] = machinev1alpha1.ProfileParameter{Type: "Integer"} }, map[string]string{"mirrorHost": "1.5"}, "must be an integer"},
		"NoBoolean":               {func(s *spec) { s.Parameters["mirrorHost"] = machinev1alpha1.ProfileParameter{Type: "Boolean"} }, map[string]string{"mirrorHost": "yes"}, `supported values: "true", "false"`},
		"NotInTheEnum":            {func(s *spec) { s.Parameters["mirrorHost"] = machinev1alpha1.ProfileParameter{Enum: []string{"a"}} }, map[string]string{"mirrorHost": "b"}, `supported values: "a"`},
		"AContainerdThatIsTooOld": {func(s *spec) { s.Containerd[0] = machinev1alpha1.ContainerdRelease{Major: 1} }, nil, `spec.version: Invalid value: "v1.36.1": no containerd of the profile serves this kubelet; it has containerd 1 (kubelets up to 1.35)`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(profile(tc.change), func(in *Input) { in.Version, in.Parameters = "v1.36.1", tc.values })
			if _, err := New(in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

func TestValuesReachStepsByTheEnvironment(t *testing.T) {
	d := document(t, input(profile(func(s *machinev1alpha1.OperatingSystemProfileSpec) {
		s.Parameters["motd"] = machinev1alpha1.ProfileParameter{}
	}), func(in *Input) { in.Parameters = map[string]string{"motd": "`reboot` $HOME"} }))
	if d.Environment["PARAMETER_MOTD"] != "`reboot` $HOME" || d.Environment["PARAMETER_MIRROR_HOST"] != "a.example.org" {
		t.Errorf("environment %q", d.Environment)
	}
	for _, s := range d.Steps {
		if strings.Contains(s.Script, "reboot") {
			t.Errorf("the value is in the step %s:\n%s", s.Name, s.Script)
		}
	}
}
