package bootstrap

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// waitingForToken is the text of a wait that is short as a rule.
const waitingForToken = "waiting for the join token and user data"

// Plan requests the join token and the user data of a Machine.
func Plan(o Observed, settings Settings) plan.Bootstrap {
	d := plan.Bootstrap{}
	if o.isWithheld() {
		d.Waiting = "the cloud has no room for the VM, so that none is requested"
		return d
	}
	var made source
	if !o.VMMayExist && !o.VMLost {
		made, d.Problem = render(o, settings)
	}
	request := &plan.JoinRequest{
		UserData: made.template, OwnUserData: made.own, Encoding: settings.Form.Encoding, MaxBytes: settings.Form.MaxBytes,
		TTL: metav1.Duration{Duration: settings.TokenTTL}, MaxLife: maxLife(o.Machine), Groups: settings.TokenGroups,
		Revoked: !wantsToken(o),
		// User data that cannot be rendered now must not change.
		Frozen: made.isEmpty(),
	}
	if request.Revoked || !made.isEmpty() || o.VMMayExist || o.Join.Published {
		d.Join = request
	}
	if d.Problem == nil && !made.isEmpty() {
		d.Problem = o.Join.Problem
	}
	if d.Problem != nil || o.VMLost {
		return d
	}
	if d.Waiting = waitsFor(o, *request); made.isEmpty() && !o.VMMayExist {
		d.Waiting = o.Config.waitsFor()
	}
	if d.Waiting == "" {
		d.SecretName, d.Key = names.UserData(o.Machine.Name, o.Machine.UID), clusterv1alpha1.ConnectionUserData
	}
	return d
}

// WantsConfig returns the template that the Bootstrap of a Machine is made from, nil if the Machine needs none. A Bootstrap
// that exists stays as it is until the Machine is deleted.
func WantsConfig(o Observed) *machinev1alpha1.BootstrapTemplateReference {
	if o.VMMayExist || o.VMLost || o.isWithheld() || o.ClassProblem != nil || o.Class == nil || o.Class.Spec.UserData == nil {
		return nil
	}
	if _, problem := ownUserData(o.Class, o.Config); problem != nil && o.Config == nil {
		return nil // No VM can be made from the class.
	}
	return o.Class.Spec.UserData.BootstrapTemplateRef
}

// isWithheld reports whether the Machine exists only to report that the cloud has no room for it.
func (o Observed) isWithheld() bool {
	return o.Machine.Annotations[machinev1alpha1.AnnotationExhausted] != "" && !o.VMMayExist && !o.VMLost && !o.Join.Published
}

// wantsToken reports whether the Machine may still join.
func wantsToken(o Observed) bool {
	return !o.NodeJoined && !o.VMLost && o.Machine.Status.Phase != machinev1alpha1.MachineFailed
}

// waitsFor describes the condition that the user data waits for, empty once it is published.
func waitsFor(o Observed, r plan.JoinRequest) string {
	switch {
	case o.VMMayExist:
		return ""
	case o.Join.Error != "":
		return "waiting for the join token: " + o.Join.Error
	case !o.Join.Published, o.Join.Hash != userdata.Hash(r.Template(), r.Encoding):
		return waitingForToken
	}
	return ""
}

func maxLife(m *machinev1alpha1.Machine) metav1.Duration {
	return metav1.Duration{Duration: plan.CreationTimeout(m) + plan.TokenSlack}
}

// A source of user data is a template, or a Secret that only the controller reads.
type source struct {
	template string
	own      *plan.OwnUserData
}

func (s source) isEmpty() bool { return s.template == "" && s.own == nil }

func render(o Observed, settings Settings) (source, *plan.Problem) {
	if o.ClassProblem != nil {
		return source{}, o.ClassProblem
	}
	if o.Class.Spec.UserData != nil {
		own, problem := ownUserData(o.Class, o.Config)
		return source{own: own}, problem
	}
	template, problem := renderTemplate(o, settings)
	return source{template: template}, problem
}

func renderTemplate(o Observed, settings Settings) (string, *plan.Problem) {
	m := o.Machine
	d, err := userdata.New(userdata.Input{
		Hostname:      names.OfMachine(m.Name, m.UID),
		Version:       m.Spec.Version,
		DownloadURL:   o.Class.Spec.OperatingSystem.KubeletDownloadURL,
		Labels:        m.Spec.Metadata.Labels,
		Taints:        m.Spec.Taints,
		StartupTaints: m.Spec.StartupTaints,
		Kubelet:       o.Class.Spec.Kubelet,
		Profile:       o.Profile,
		Parameters:    o.Class.Spec.OperatingSystem.Parameters,
		Settings:      o.Class.Spec.OperatingSystem.OperatingSystemSettings,
		Architecture:  architectureOf(o.Class),

		ExternalCloudProvider: settings.ExternalCloudProvider,
		ProviderIDCommand:     settings.ProviderIDCommand,
	})
	if err != nil {
		return "", problemOf(o.Class, err)
	}
	format, err := formatOf(o.Class, o.Profile)
	if err != nil {
		return "", problemOf(o.Class, err)
	}
	b, err := d.Encode(format)
	if err != nil {
		return "", problemOf(o.Class, err)
	}
	if err := d.CheckSize(string(b), settings.Form); err != nil {
		return "", problemOf(o.Class, err)
	}
	return string(b), nil
}

// architectureOf returns the architecture of the VMs of a class, empty if it is unknown.
func architectureOf(class *machinev1alpha1.MachineClass) string {
	if class.Spec.NodeCapacity == nil {
		return ""
	}
	return class.Spec.NodeCapacity.Architecture
}

// formatOf returns the format of the user data: that of the class, or else the first one of the
// profile.
func formatOf(class *machinev1alpha1.MachineClass, profile *machinev1alpha1.OperatingSystemProfile) (machinev1alpha1.ProvisioningFormat, error) {
	format := class.Spec.OperatingSystem.Provisioning
	switch {
	case profile == nil || len(profile.Spec.Formats) == 0:
		return format, nil
	case format == "":
		return profile.Spec.Formats[0], nil
	case !slices.Contains(profile.Spec.Formats, format):
		return "", field.NotSupported(field.NewPath("class", "spec", "operatingSystem", "provisioning"), format, profile.Spec.Formats)
	}
	return format, nil
}

// Check renders the user data of a specimen and returns the problem with it. It returns nil if the
// Composition has no step Bootstrap, because its user data is unknown then.
func Check(composition plan.Object, specimen Observed) *plan.Problem {
	raw := plan.InputOf(composition, "Bootstrap")
	if raw == nil {
		return nil
	}
	input := &fn.Bootstrap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, input); err != nil {
		return &plan.Problem{
			Reason:  machinev1alpha1.ReasonBindingInvalid,
			Message: fmt.Sprintf("Composition %q, input Bootstrap: %v", composition.GetName(), err),
		}
	}
	_, problem := render(specimen, SettingsOf(input))
	return problem
}
