// Package install installs Crossplane packages as "crossplane xpkg install" does, and waits until
// their types are served.
package install

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/apply"
)

const (
	period = 200 * time.Millisecond
	// waitsPeriod is the time between two reports of what Run waits for.
	waitsPeriod = 15 * time.Second
	// lock is the name of Crossplane's only Lock.
	lock = "lock"
)

// A Package to install.
type Package struct {
	// Kind is configuration, provider or function.
	Kind string
	// Reference has registry, repository and tag or digest.
	Reference string
	// Name of the object. The default derives from the repository, as Crossplane does it.
	Name string
}

func (p Package) object() (objectName, source string, err error) {
	ref, err := name.ParseReference(p.Reference, name.StrictValidation)
	if err != nil {
		return "", "", err
	}
	if p.Name != "" {
		return p.Name, xpkg.ParsePackageSourceFromReference(ref), nil
	}
	return xpkg.ToDNSLabel(ref.Context().RepositoryStr()), xpkg.ParsePackageSourceFromReference(ref), nil
}

// Run creates the package object, or changes its version. It waits until the package and all its
// dependencies are healthy and their types are served. report receives lines of progress.
func Run(ctx context.Context, c client.Client, p Package, report func(string)) error {
	objectName, source, err := p.object()
	if err != nil {
		return err
	}
	kind := strings.ToUpper(p.Kind[:1]) + p.Kind[1:]
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": p.Reference}}}
	o.SetGroupVersionKind(pkgv1.SchemeGroupVersion.WithKind(kind))
	o.SetName(objectName)
	if err := apply.Object(ctx, c, o); err != nil {
		return err
	}
	report(fmt.Sprintf("%s %s: %s", kind, objectName, p.Reference))

	ready := map[string]bool{}
	tick := time.NewTicker(waitsPeriod)
	defer tick.Stop()
	for {
		v, err := read(ctx, c)
		var waits map[string]string
		if err == nil {
			waits = v.pending(source)
			for _, s := range v.closure(source) {
				if waits[s] == "" && !ready[s] {
					ready[s] = true
					report(s + " is installed and healthy")
				}
			}
			if len(waits) == 0 {
				return nil
			}
		}
		select {
		case <-time.After(period):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err, list(waits))
		}
		select {
		case <-tick.C:
			if err != nil {
				report("waits for the API server: " + err.Error())
			}
			for _, s := range slices.Sorted(maps.Keys(waits)) {
				report("waits for " + s + ": " + waits[s])
			}
		default:
		}
	}
}

func list(waits map[string]string) error {
	var errs []error
	for _, s := range slices.Sorted(maps.Keys(waits)) {
		errs = append(errs, fmt.Errorf("%s: %s", s, waits[s]))
	}
	return errors.Join(errs...)
}

func read(ctx context.Context, c client.Client) (view, error) {
	v := view{dependencies: map[string][]string{}}
	l := &v1beta1.Lock{}
	if err := c.Get(ctx, client.ObjectKey{Name: lock}, l); err != nil {
		return v, err
	}
	for _, p := range l.Packages {
		v.dependencies[p.Source] = []string{}
		for _, d := range p.Dependencies {
			v.dependencies[p.Source] = append(v.dependencies[p.Source], d.Package)
		}
	}
	for _, k := range []struct {
		list     pkgv1.PackageList
		revision func() pkgv1.PackageRevision
	}{
		{&pkgv1.ConfigurationList{}, func() pkgv1.PackageRevision { return &pkgv1.ConfigurationRevision{} }},
		{&pkgv1.ProviderList{}, func() pkgv1.PackageRevision { return &pkgv1.ProviderRevision{} }},
		{&pkgv1.FunctionList{}, func() pkgv1.PackageRevision { return &pkgv1.FunctionRevision{} }},
	} {
		if err := c.List(ctx, k.list); err != nil {
			return v, err
		}
		for _, p := range k.list.GetPackages() {
			i, err := readPackage(ctx, c, p, k.revision())
			if err != nil {
				return v, err
			}
			v.packages = append(v.packages, i)
		}
	}
	return v, nil
}

func readPackage(ctx context.Context, c client.Client, p pkgv1.Package, r pkgv1.PackageRevision) (installed, error) {
	i := installed{installed: p.GetCondition(pkgv1.TypeInstalled), healthy: p.GetCondition(pkgv1.TypeHealthy)}
	ref, err := name.ParseReference(p.GetSource())
	if err != nil {
		return i, err
	}
	i.source = xpkg.ParsePackageSourceFromReference(ref)
	i.stale = p.GetCurrentIdentifier() != p.GetSource()
	if p.GetCurrentRevision() == "" {
		return i, nil
	}
	if err := c.Get(ctx, client.ObjectKey{Name: p.GetCurrentRevision()}, r); err != nil {
		// The revision does not exist yet, or was just replaced.
		return i, client.IgnoreNotFound(err)
	}
	found, have, invalid := r.GetDependencyStatus()
	i.unresolved = found - have + invalid
	for _, o := range r.GetObjects() {
		ok, err := established(ctx, c, o)
		if err != nil {
			return i, err
		}
		if !ok {
			i.notEstablished = append(i.notEstablished, o.Name)
		}
	}
	return i, nil
}

// established reports whether the type that o defines is served. An object that defines no type, or
// that is not meant to be active, counts as established.
func established(ctx context.Context, c client.Client, o xpv2.TypedReference) (bool, error) {
	switch o.Kind {
	case "CompositeResourceDefinition", "ManagedResourceDefinition", "CustomResourceDefinition":
	default:
		return true, nil
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(o.APIVersion)
	u.SetKind(o.Kind)
	if err := c.Get(ctx, client.ObjectKey{Name: o.Name}, u); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if state, _, _ := unstructured.NestedString(u.Object, "spec", "state"); state == "Inactive" {
		return true, nil
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] == "Established" {
			return c["status"] == string(corev1.ConditionTrue), nil
		}
	}
	return false, nil
}
