package installations

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const at = "2030-01-01T12:00:00Z"

func definition(uid types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(definitionKind)
	u.SetName(v1alpha1.DefinitionOfInstallation)
	u.SetUID(uid)
	return u
}

func system() client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "here"}}
}

func record(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "drover-installations"}, Data: data}
}

func keeperOf(c client.Client) *keeper {
	return &keeper{live: c, client: c, now: func() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }, log: logging.NewNopLogger()}
}

func TestLook(t *testing.T) {
	cases := map[string]struct {
		there []client.Object
		want  map[string]string
	}{
		"WithoutAnInstallationNothingIsRecorded":  {[]client.Object{system()}, nil},
		"WithoutAControlClusterNothingIsRecorded": {[]client.Object{definition("a")}, nil},
		"TheFirstInstallationIsRecorded":          {[]client.Object{system(), definition("a")}, map[string]string{"control-cluster": "here", "a": "Current since " + at}},
		"AReinstallationReplacesIt": {
			[]client.Object{system(), definition("b"), record(map[string]string{"control-cluster": "here", "a": "Current since then"})},
			map[string]string{"control-cluster": "here", "a": "Replaced at " + at + ", was Current since then", "b": "Current since " + at},
		},
		"WhatAnOperatorAddedStays": {
			[]client.Object{system(), definition("a"), record(map[string]string{"control-cluster": "here", "a": "Current since then", "z": "Lost"})},
			map[string]string{"control-cluster": "here", "a": "Current since then", "z": "Lost"},
		},
		"ARestoredRecordProvesNothing": {
			[]client.Object{system(), definition("b"), record(map[string]string{"control-cluster": "there", "a": "Current since then"})},
			map[string]string{"control-cluster": "here", "a": "Elsewhere, in the record of control cluster there: Current since then", "b": "Current since " + at},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(tc.there...).Build()
			if err := keeperOf(c).look(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := record(nil)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got.Data); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestADefinitionThatIsBeingDeletedIsNoInstallation(t *testing.T) {
	going := definition("a")
	going.SetFinalizers([]string{"example.org/stuck"})
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(system(), going).Build()
	if err := c.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	if err := keeperOf(c).look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(record(nil)), &corev1.ConfigMap{}); err == nil {
		t.Error("it is recorded")
	}
}

func TestAnErrorNamesWhatCannotBeRead(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(system(), definition("a")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == metav1.NamespaceSystem {
				return errors.New("forbidden")
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	if err := keeperOf(c).look(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot read the Namespace kube-system: forbidden") {
		t.Errorf("error %v", err)
	}
}
