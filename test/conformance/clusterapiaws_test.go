package conformance

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/aws"
	"github.com/drover-dev/drover/test/fakes/awsmodel"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/guest"
	"github.com/drover-dev/drover/test/patience"
)

// awsTools has the provider, and awsModule is its module.
const awsTools tools = "tools/cluster-api-aws"

const awsModule = "sigs.k8s.io/cluster-api-provider-aws/v2"

var awsMachine = schema.GroupVersionKind{Group: devGroup, Version: "v1beta2", Kind: "AWSMachine"}

// TestInfrastructureProviders has the provider of a real cloud make, replace and delete the VMs of the example.
func TestInfrastructureProviders(t *testing.T) {
	t.Run("clusterapi", amazonsProviderMakesTheVMs)
}

// An awsProvider is Cluster API Provider AWS, unmodified, with an account at the fake of EC2. Amazon's models judge its
// requests and the responses.
type awsProvider struct {
	kit.Fleet
	guests
	cloud *aws.Cloud
	ec2   *httptest.Server
}

func amazonsProviderMakesTheVMs(t *testing.T) {
	kit.OnlyInLong(t, "TestTheContract in internal/controller/clusterapi")
	t.Parallel()
	capi, p := installedClusterAPI(t)
	x := &awsProvider{Fleet: p.NewFleet(t)}
	x.host = newHost(p)
	x.startCloud(t)
	x.startProvider(t, p)
	class := x.createClass(t, capi)

	// The provider looks after a minute whether an instance that it terminated is gone.
	md := x.Deployment("web", 2, 3, 0)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	x.Create(t, md)
	x.AwaitDeployment(t, md.Name)
	x.eachMachineHasItsInstance(t, 2)

	// Without room, the Machine has the words of the cloud, and goes on when there is some.
	mend := x.cloud.Break(fakes.Fault{
		Call: "RunInstances", Status: http.StatusInternalServerError, Code: "InsufficientInstanceCapacity",
		Message: "We currently do not have sufficient m6i.large capacity in the Availability Zone you requested (eu-west-1a).",
	})
	x.Patch(t, md, `{"spec":{"replicas":3}}`)
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := x.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		var said []string
		for _, m := range machines {
			if op := m.Status.LastOperation; op != nil {
				said = append(said, fmt.Sprintf("%s: %s", op.ErrorCode, op.Description))
			}
		}
		if !slices.ContainsFunc(said, func(s string) bool {
			return strings.HasPrefix(s, "CapacityExhausted") && strings.Contains(s, "InsufficientInstanceCapacity")
		}) {
			return strings.Join(said, "\n")
		}
		return ""
	}, x.Describe)
	mend()
	x.AwaitDeployment(t, md.Name)
	before := x.eachMachineHasItsInstance(t, 3)

	next := x.newClass(t, "next")
	next.Spec.ForProvider.Raw = bytes.ReplaceAll(next.Spec.ForProvider.Raw, []byte("m6i.large"), []byte("m6i.xlarge"))
	x.Create(t, next)
	x.Patch(t, md, `{"spec":{"template":{"spec":{"classRef":{"name":"next"}}}}}`)
	x.AwaitDeployment(t, md.Name)
	for _, id := range x.eachMachineHasItsInstance(t, 3) {
		if slices.Contains(before, id) {
			t.Errorf("instance %s is of the old class", id)
		}
	}

	must(t, x.Client.Delete(t.Context(), md))
	patience.Eventually(t, func(ctx context.Context) string {
		for _, k := range []schema.GroupVersionKind{awsMachine, coreKind("Machine"), machinev1alpha1.MachineGroupVersionKind} {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
			if err := x.Client.List(ctx, l, client.InNamespace(x.Namespace)); err != nil || len(l.Items) > 0 {
				return fmt.Sprintf("%d %s, %v", len(l.Items), k, err)
			}
		}
		return ""
	}, x.Describe)
	if left := x.running(); len(left) > 0 || len(x.cloud.Resources()) > 0 {
		t.Errorf("instances %v and %d other resources are left", left, len(x.cloud.Resources()))
	}
}

// startCloud starts the fake, which also serves the calls that Drover's own provider does not make.
func (x *awsProvider) startCloud(t *testing.T) {
	t.Helper()
	models, err := awsmodel.Read()
	must(t, err)
	guestOf := func(id string) string { return "clusterapi/" + id }
	x.cloud = aws.New(aws.Options{
		Step: 500 * time.Millisecond, ShownAfter: 200 * time.Millisecond, Others: true,
		Boot: func(b aws.Booted) string {
			return x.start(guest.Request{ID: guestOf(b.ID), Name: b.Name, UserData: b.UserData, ProviderID: "aws:///" + b.Zone + "/" + b.ID})
		},
		Stop: func(b aws.Booted) { x.end(guestOf(b.ID)) },
	})
	x.cloud.SetKey(keyOf(x.Namespace), aws.Key{Secret: secretOf(x.Namespace), Account: x.Namespace})
	refused := &violations{}
	x.ec2 = httptest.NewServer(awsmodel.NewJudge(models, x.cloud, refused.add))
	t.Cleanup(func() {
		x.ec2.Close()
		refused.check(t)
	})
}

// startProvider runs Cluster API Provider AWS with its CRDs and the rights of the example.
func (x *awsProvider) startProvider(t *testing.T, p *kit.Plane) {
	t.Helper()
	dir, err := awsTools.module(awsModule)
	must(t, err)
	// As its kustomization has it, it fulfills v1beta1.
	labels := map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2"}
	must(t, createCRDs(t.Context(), x.Client, filepath.Join(dir, "config/crd/bases/infrastructure.cluster.x-k8s.io_*.yaml"), labels))
	must(t, createCRDs(t.Context(), x.Client, filepath.Join(dir, "config/crd/bases/controlplane.cluster.x-k8s.io_*.yaml"), labels))
	for _, kind := range []string{"AWSMachine", "AWSCluster"} {
		must(t, awaitServed(t.Context(), x.Client, awsMachine.GroupVersion().WithKind(kind)))
	}
	must(t, localplane.Apply(t.Context(), x.Client, filepath.Join(kit.Root(), "examples/clusterapi/rbac.yaml")))
	capiProvider{
		tools: awsTools, name: "aws", pkg: awsModule,
		flags: []string{"--namespace=" + x.Namespace, "--health-addr=127.0.0.1:0", "--feature-gates=EKS=false,MachinePool=false", "--service-endpoints=" + awsRegion + ":ec2=" + x.ec2.URL},
		env:   []string{"AWS_ACCESS_KEY_ID=" + keyOf(x.Namespace), "AWS_SECRET_ACCESS_KEY=" + secretOf(x.Namespace), "AWS_EC2_METADATA_DISABLED=true"},
	}.run(t, p)
}

// createClass creates the InfraCluster, the configuration and the class of the example, with the values of the fake.
func (x *awsProvider) createClass(t *testing.T, capi *clusterAPI) *machinev1alpha1.MachineClass {
	t.Helper()
	infra := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(x.example(t, "infracluster.yaml"), &infra.Object))
	infra.SetNamespace(x.Namespace)
	x.Create(t, infra)
	must(t, x.Client.Status().Patch(t.Context(), infra, client.RawPatch(types.MergePatchType, []byte(`{"status":{"ready":true}}`))))
	capi.account(t, x.Fleet, map[string]any{
		"clusterName": infra.GetName(), "infraCluster": map[string]any{"kind": infra.GetKind(), "name": infra.GetName()},
		"infraMachineKinds": []any{map[string]any{"kind": awsMachine.Kind}},
	})
	class := x.newClass(t, "workers")
	x.Create(t, class)
	return class
}

// newClass returns the class of the example.
func (x *awsProvider) newClass(t *testing.T, name string) *machinev1alpha1.MachineClass {
	t.Helper()
	c := &machinev1alpha1.MachineClass{}
	must(t, yaml.UnmarshalStrict(x.example(t, "machineclass.yaml"), c))
	c.Namespace, c.Name, c.Spec.ProviderConfigRef.Name = x.Namespace, name, x.Namespace
	return c
}

// example returns a file of the example with the values of the fake.
func (x *awsProvider) example(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), "examples/clusterapi", file))
	must(t, err)
	for placeholder, value := range map[string]string{
		"REPLACE-REGION": awsRegion, "REPLACE-VPC-ID": "vpc-1", "REPLACE-SUBNET-ID": "subnet-a", "REPLACE-AMI-ID": "ami-ubuntu",
		"REPLACE-INSTANCE-PROFILE": "nodes", "REPLACE-API-SERVER-HOST": "127.0.0.1",
	} {
		b = bytes.ReplaceAll(b, []byte(placeholder), []byte(value))
	}
	return b
}

// running returns the IDs of the instances that exist.
func (x *awsProvider) running() []string {
	var out []string
	for _, i := range x.cloud.Instances() {
		out = append(out, i.ID)
	}
	return out
}

// eachMachineHasItsInstance returns the IDs of the instances.
func (x *awsProvider) eachMachineHasItsInstance(t *testing.T, n int) []string {
	t.Helper()
	machines, err := x.Machines(t.Context())
	must(t, err)
	ids := x.running()
	if len(machines) != n || len(ids) != n {
		t.Fatalf("%d Machines and %d instances, want %d", len(machines), len(ids), n)
	}
	for _, m := range machines {
		node := &corev1.Node{}
		must(t, x.Client.Get(t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, node))
		id := m.Status.ProviderID[strings.LastIndex(m.Status.ProviderID, "/")+1:]
		if !slices.Contains(ids, id) || node.Spec.ProviderID != m.Status.ProviderID {
			t.Errorf("Machine %s has the providerID %s, its Node %s; instances %v", m.Name, m.Status.ProviderID, node.Spec.ProviderID, ids)
		}
	}
	return ids
}
