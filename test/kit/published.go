package kit

import (
	"context"
	"fmt"
	"strings"
	"time"

	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/test/patience"
)

// publishedInterval is the time between two reads.
const publishedInterval = 200 * time.Millisecond

// CRDNames returns the names of the CRDs of the control cluster.
func (p *Plane) CRDNames(ctx context.Context) (map[string]bool, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	names := map[string]bool{}
	err := p.Client.List(ctx, l)
	for _, crd := range l.Items {
		names[crd.GetName()] = true
	}
	return names, err
}

// AwaitPublished waits until the API server publishes the schemas of all CRDs that are not among those before, and then changes
// each of them. Crossplane keeps the schemas that it has read until a CRD changes, and the API server publishes a new schema only
// some time after that.
func (p *Plane) AwaitPublished(ctx context.Context, before map[string]bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(extv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := p.Client.List(ctx, l); err != nil {
		return err
	}
	for i := range l.Items {
		crd := &l.Items[i]
		if before[crd.GetName()] {
			continue
		}
		var last error
		err := wait.PollUntilContextTimeout(ctx, publishedInterval, patience.Limit(), true, func(context.Context) (bool, error) {
			last = shows(d.OpenAPIV3(), crd)
			return last == nil, nil
		})
		if err != nil {
			return last
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"test.drover.dev/published":%q}}}`, time.Now().Format(time.RFC3339Nano))
		if err := p.Client.Patch(ctx, crd, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			return err
		}
	}
	return nil
}

// The result is an error that names a schema of the CRD that the API server does not publish yet.
func shows(c openapi.Client, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	paths, err := c.Paths()
	if err != nil {
		return err
	}
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		path := fmt.Sprintf("apis/%s/%s", group, version["name"])
		gv, ok := paths[path]
		if !ok {
			return fmt.Errorf("the API server publishes no schemas of %s", path)
		}
		doc, err := gv.Schema("application/json")
		if err != nil {
			return err
		}
		if !strings.Contains(string(doc), fmt.Sprintf(`"kind":%q`, kind)) {
			return fmt.Errorf("the API server publishes no schema of %s of %s", kind, path)
		}
	}
	return nil
}
