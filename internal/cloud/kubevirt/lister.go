package kubevirt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// page is how many objects are listed at once.
	page = 500
	// answerTimeout ends a call that the API server does not answer.
	answerTimeout = time.Minute
	// maxMessage is the length to which an error of the API server is shortened.
	maxMessage = 256
)

var virtualMachines = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachines"}

// Options of a Lister.
type Options struct {
	// Credentials are a kubeconfig of the cluster with KubeVirt. Empty: the service account of
	// the pod, in the cluster that the process runs in.
	Credentials []byte
	// Endpoint is the URL of the API server. Default: that of the credentials.
	Endpoint string
	// Namespace of the VirtualMachines. Default: all namespaces.
	Namespace string
}

// New returns a Lister of a cluster. It makes no call.
func New(_ context.Context, o Options) (inventory.Lister, error) {
	cfg, err := configOf(o.Credentials)
	if err != nil {
		return nil, err
	}
	if o.Endpoint != "" {
		if u, err := url.Parse(o.Endpoint); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			return nil, errors.New("endpoint: must be a URL like https://10.0.0.1:6443")
		}
		cfg.Host = o.Endpoint
	}
	cfg.UserAgent, cfg.Timeout = "drover", answerTimeout
	// The API server limits the rate of calls itself, and a list takes few calls.
	cfg.QPS, cfg.Burst = -1, 0
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, errors.New("credentials: cannot make a client of the kubeconfig: its certificates or its key are not in PEM format, or do not belong together")
	}
	return &lister{client: c, namespace: o.Namespace}, nil
}

func configOf(kubeconfig []byte) (*rest.Config, error) {
	if len(bytes.TrimSpace(kubeconfig)) == 0 {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("credentials: must not be empty outside of a pod: %w", err)
		}
		return cfg, nil
	}
	cfg, err := target.ParseKubeconfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("credentials: kubeconfig: %w", err)
	}
	return cfg, nil
}

type lister struct {
	client    dynamic.Interface
	namespace string
}

var (
	_ inventory.ResourceLister = &lister{}
	_ inventory.Finder         = &lister{}
)

// List lists the VirtualMachines with the label of the installation.
func (l *lister) List(ctx context.Context, installation string) ([]inventory.VM, bool, error) {
	found, err := l.labeled(ctx, virtualMachines, installation)
	if err != nil {
		return nil, false, err
	}
	vms := make([]inventory.VM, 0, len(found))
	for i := range found {
		// A VirtualMachine that is being deleted is stopped already: its deletion only removes the
		// object.
		if vm := &found[i]; vm.GetDeletionTimestamp() == nil && vm.GetLabels()[machinev1alpha1.TagInstallation] == installation {
			vms = append(vms, vmOf(vm))
		}
	}
	return vms, true, nil
}

// Find returns the VirtualMachines with these names, regardless of their labels, by a call per
// name.
func (l *lister) Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error) {
	var vms []inventory.VM
	for _, name := range externalNames {
		found, err := l.all(ctx, virtualMachines, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
		if err != nil {
			return nil, false, err
		}
		for i := range found {
			if found[i].GetDeletionTimestamp() == nil && found[i].GetName() == name {
				vms = append(vms, vmOf(&found[i]))
			}
		}
	}
	return vms, true, nil
}

// labeled lists the objects with the label of an installation.
func (l *lister) labeled(ctx context.Context, kind schema.GroupVersionResource, installation string) ([]unstructured.Unstructured, error) {
	return l.all(ctx, kind, metav1.ListOptions{LabelSelector: labels.Set{machinev1alpha1.TagInstallation: installation}.String()})
}

// all lists every page. The API server serves all pages as of the first one, or refuses the
// next.
func (l *lister) all(ctx context.Context, kind schema.GroupVersionResource, opts metav1.ListOptions) ([]unstructured.Unstructured, error) {
	opts.Limit = page
	var out []unstructured.Unstructured
	for {
		list, err := l.client.Resource(kind).Namespace(l.namespace).List(ctx, opts)
		if err != nil {
			return nil, describe(kind, err)
		}
		out = append(out, list.Items...)
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return out, nil
		}
	}
}

func describe(kind schema.GroupVersionResource, err error) error {
	out := &inventory.CallError{Text: fmt.Sprintf("cannot list %s: %s", kind.GroupResource(), text.Shorten(err.Error(), maxMessage)), Cause: err}
	switch {
	case kerrors.IsUnauthorized(err), kerrors.IsForbidden(err):
		out.Class = fn.ErrorPermissionDenied
	case kerrors.IsTooManyRequests(err):
		out.Class = fn.ErrorThrottled
	}
	return out
}

func vmOf(o *unstructured.Unstructured) inventory.VM {
	status, _, _ := unstructured.NestedString(o.Object, "status", "printableStatus")
	tags := map[string]string{}
	for k, v := range o.GetLabels() {
		tags[k] = v
	}
	// A VirtualMachine is in the namespace of its Machine. A label could name another one.
	tags[machinev1alpha1.TagNamespace] = o.GetNamespace()
	return inventory.VM{
		ExternalName: o.GetName(), ProviderID: "kubevirt://" + o.GetName(), Name: o.GetName(), Tags: tags, CreatedAt: o.GetCreationTimestamp().UTC(),
		State: stateOf(status), StateText: "printable status " + cmp.Or(status, "unknown"),
	}
}

// stateOf returns the state for a VirtualMachinePrintableStatus of kubevirt.io/api/core/v1.
// KubeVirt retries after each of its errors, so no error is the end of a VM.
func stateOf(printable string) inventory.State {
	switch printable {
	case "Running", "Migrating":
		return inventory.StateRunning
	case "Stopped", "Stopping", "Terminating", "Paused":
		return inventory.StateStopped
	case "Provisioning", "Starting", "WaitingForVolumeBinding", "WaitingForReceiver", "CrashLoopBackOff",
		"ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "DataVolumeError":
		return inventory.StatePending
	}
	return inventory.StateUnknown
}
