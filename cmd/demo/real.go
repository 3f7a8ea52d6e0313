package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/localplane"
)

// realName is the name of the MachineDeployment and the DaemonSet of the examples.
const realName = "real"

// realExamples are the files of examples/local-real, in the order in which they are applied.
var realExamples = []string{"machineclass", "machineclass-medium", "daemonset", "machinedeployment"}

// rollPatch replaces the Machines by Machines of the other class.
const rollPatch = `{"spec":{"template":{"spec":{"classRef":{"name":"real-medium"}}}}}`

// runReal creates three real VMs that join and run a pod each, rolls them, and deletes them.
func runReal(ctx context.Context, c client.Client, plane *localplane.Status, show *steps, root string, out io.Writer) error {
	began := time.Now()
	note := func(what string) {
		fmt.Fprintf(out, "\n%s after %s\n\n", what, time.Since(began).Round(time.Second))
	}
	if err := reachable(ctx, c, plane); err != nil {
		return err
	}
	for _, f := range realExamples {
		if err := apply(ctx, c, show, filepath.Join(root, "examples", "local-real", f+".yaml")); err != nil {
			return err
		}
	}
	show.end()
	for _, s := range []struct {
		patch, what string
	}{
		{"", "Three real machines run a pod each"},
		{rollPatch, "Three larger machines replaced them"},
	} {
		if s.patch != "" {
			if err := patchDeployment(ctx, c, s.patch); err != nil {
				return err
			}
		}
		if err := follow(ctx, c, out); err != nil {
			return err
		}
		if err := await(ctx, "the pods run", func() (bool, error) { return podsRun(ctx, c) }); err != nil {
			return err
		}
		note(s.what)
	}
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: realName}}
	if err := c.Delete(ctx, md); err != nil {
		return err
	}
	if err := await(ctx, "all machines are gone", func() (bool, error) {
		v, err := collect.View(ctx, c, time.Now(), collect.Options{Namespace: namespace})
		return err == nil && len(v.Machines) == 0, err
	}); err != nil {
		return err
	}
	note("All machines are gone")
	return nil
}

// reachable configures an address of the API server that the VMs can reach, because their loopback
// interface is not the one of this computer.
func reachable(ctx context.Context, c client.Client, plane *localplane.Status) error {
	server, err := url.Parse(plane.Control.Server)
	if err != nil {
		return err
	}
	pc := &clusterv1alpha1.ClusterProviderConfig{}
	if err := c.Get(ctx, client.ObjectKey{Name: "default"}, pc); err != nil {
		return err
	}
	before := client.MergeFrom(pc.DeepCopy())
	pc.Spec.APIServer = &clusterv1alpha1.APIServer{Endpoint: fmt.Sprintf("https://%s:%s", localcloud.HostAddress, server.Port())}
	return c.Patch(ctx, pc, before)
}

func patchDeployment(ctx context.Context, c client.Client, patch string) error {
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: realName}}
	if err := c.Patch(ctx, md, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return err
	}
	generation := md.Generation
	return await(ctx, "the change is observed", func() (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(md), md)
		return md.Status.ObservedGeneration >= generation, err
	})
}

func podsRun(ctx context.Context, c client.Client) (bool, error) {
	d := &appsv1.DaemonSet{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: realName}, d); err != nil {
		return false, err
	}
	s := d.Status
	return s.DesiredNumberScheduled > 0 && s.NumberReady == s.DesiredNumberScheduled, nil
}

func await(ctx context.Context, what string, is func() (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(context.Context) (bool, error) { return is() })
	if wait.Interrupted(err) {
		return fmt.Errorf("not so: %s: %w", what, err)
	}
	return err
}
