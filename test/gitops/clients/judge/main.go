// Command judge prints the verdicts of Argo CD and Flux on objects: their health, as each client
// computes it, and whether Argo CD sees a difference between an object and its manifest.
//
// It reads one JSON document from its standard input and writes one to its standard output.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	appv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/argo/diff"
	"github.com/argoproj/argo-cd/v3/util/argo/normalizers"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/fluxcd/cli-utils/pkg/kstatus/polling/engine"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// A Request has objects to judge.
type Request struct {
	// Customizations is the key resource.customizations of the ConfigMap argocd-cm.
	Customizations string
	// IgnoreDifferences of the Application.
	IgnoreDifferences []appv1.ResourceIgnoreDifferences
	// HealthCheckExprs of the Kustomization.
	HealthCheckExprs []kustomize.CustomHealthCheck
	// Objects whose health is computed.
	Objects []*unstructured.Unstructured
	// Manifests that are compared with Objects, by index. If it is empty, no object is compared.
	Manifests []*unstructured.Unstructured
}

// A Verdict is about one object.
type Verdict struct {
	Argo, ArgoMessage string
	// Flux is the verdict with the Kustomization, and Kstatus the verdict without expressions.
	Flux, FluxMessage       string
	Kstatus, KstatusMessage string
	// OutOfSync means that Argo CD would apply the manifest.
	OutOfSync bool
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	req := Request{}
	if err := json.NewDecoder(os.Stdin).Decode(&req); err != nil {
		return err
	}
	// Decode the key as the settings of Argo CD do.
	overrides := map[string]appv1.ResourceOverride{}
	if err := yaml.Unmarshal([]byte(req.Customizations), &overrides); err != nil {
		return fmt.Errorf("resource.customizations: %w", err)
	}
	differ, err := diff.NewDiffConfigBuilder().
		WithDiffSettings(req.IgnoreDifferences, overrides, false, normalizers.IgnoreNormalizerOpts{}).
		WithTracking("app.kubernetes.io/instance", string(appv1.TrackingMethodAnnotation)).
		WithNoCache().Build()
	if err != nil {
		return err
	}
	flux, err := readersOf(req.HealthCheckExprs)
	if err != nil {
		return err
	}
	out := make([]Verdict, 0, len(req.Objects))
	for i, o := range req.Objects {
		v, err := judge(overrides, flux, o)
		if err != nil {
			return err
		}
		if len(req.Manifests) > 0 {
			d, err := diff.StateDiff(o, req.Manifests[i], differ)
			if err != nil {
				return err
			}
			v.OutOfSync = d.Modified
		}
		out = append(out, v)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// readersOf returns the status reader of each kind that has expressions.
func readersOf(checks []kustomize.CustomHealthCheck) (map[schema.GroupKind]engine.StatusReader, error) {
	out := map[schema.GroupKind]engine.StatusReader{}
	for _, c := range checks {
		kind := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()
		e, err := cel.NewStatusEvaluator(&c.HealthCheckExpressions)
		if err != nil {
			return nil, fmt.Errorf("healthCheckExprs of %s: %w", kind, err)
		}
		out[kind] = cel.NewStatusReader(context.Background(), nil, kind, e)
	}
	return out, nil
}

func judge(overrides map[string]appv1.ResourceOverride, flux map[schema.GroupKind]engine.StatusReader, o *unstructured.Unstructured) (Verdict, error) {
	v := Verdict{}
	h, err := health.GetResourceHealth(o, lua.ResourceHealthOverrides(overrides))
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	// The health of an Application ignores an object without a health check.
	v.Argo = "none"
	if h != nil {
		v.Argo, v.ArgoMessage = string(h.Status), h.Message
	}
	k, err := status.Compute(o)
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	v.Kstatus, v.KstatusMessage = string(k.Status), k.Message
	v.Flux, v.FluxMessage = v.Kstatus, v.KstatusMessage
	if reader := flux[o.GroupVersionKind().GroupKind()]; reader != nil {
		r, err := reader.ReadStatusForObject(context.Background(), nil, o)
		if err != nil {
			return v, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		v.Flux, v.FluxMessage = string(r.Status), r.Message
		if r.Error != nil {
			v.FluxMessage = r.Error.Error()
		}
	}
	return v, nil
}
