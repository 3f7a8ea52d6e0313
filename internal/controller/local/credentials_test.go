package local

import (
	"context"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
)

const good = `{"endpoint":"http://cloud","token":"s3cret"}`

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"credentials": []byte(value)},
	}
}

func spec(namespace, name, key string) v1alpha1.ProviderConfigSpec {
	return v1alpha1.ProviderConfigSpec{Credentials: v1alpha1.Credentials{
		SecretRef: v1alpha1.SecretKeySelector{Namespace: namespace, Name: name, Key: key},
	}}
}

func named(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: "config"}
}

func TestFindCredentials(t *testing.T) {
	cluster := func(key string) client.Object {
		return &v1alpha1.ClusterProviderConfig{ObjectMeta: named(""), Spec: spec("system", "s", key)}
	}
	local := func(secretNamespace string) client.Object {
		return &v1alpha1.ProviderConfig{ObjectMeta: named("ns"), Spec: spec(secretNamespace, "s", "credentials")}
	}
	cases := map[string]struct {
		kind    string
		objects []client.Object
		err     string
	}{
		"AClusterProviderConfigReadsTheNamedNamespace": {
			kind: "ClusterProviderConfig", objects: []client.Object{cluster("credentials"), secret("system", "s", good)},
		},
		"AProviderConfigReadsItsOwnNamespace": {
			kind: "ProviderConfig", objects: []client.Object{local(""), secret("ns", "s", good)},
		},
		"AProviderConfigReadsNoOtherNamespace": {
			kind: "ProviderConfig", objects: []client.Object{local("system"), secret("system", "s", good)},
			err: "cannot get Secret ns/s",
		},
		"AMissingConfigIsNamed": {kind: "ClusterProviderConfig", err: `spec.providerConfigRef: cannot get ClusterProviderConfig "config"`},
		"AnotherKindIsRefused":  {kind: "Other", err: `spec.providerConfigRef.kind: invalid value "Other": must be ProviderConfig or ClusterProviderConfig`},
		"AMissingKeyIsNamed": {
			kind: "ClusterProviderConfig", objects: []client.Object{cluster("other"), secret("system", "s", good)},
			err: `Secret system/s, key "other": there is no such key`,
		},
		"WhatIsNotJSONIsRefused": {
			kind: "ClusterProviderConfig", objects: []client.Object{cluster("credentials"), secret("system", "s", "s3cret")},
			err: `Secret system/s, key "credentials": must be a JSON object`,
		},
		"AnUnknownFieldIsRefused": {
			kind: "ClusterProviderConfig", objects: []client.Object{cluster("credentials"), secret("system", "s", `{"s3cret":"x"}`)},
			err: `Secret system/s, key "credentials": must be a JSON object`,
		},
		"AnEmptyTokenIsRefused": {
			kind: "ClusterProviderConfig", objects: []client.Object{cluster("credentials"), secret("system", "s", `{"endpoint":"http://cloud"}`)},
			err: `token: must not be empty`,
		},
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm"}}
			vm.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: tc.kind, Name: "config"})
			got, err := findCredentials(context.Background(), fake.NewClientBuilder().WithScheme(s).WithObjects(tc.objects...).Build(), vm)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one with %q", err, tc.err)
				}
				if strings.Contains(err.Error(), "s3cret") {
					t.Errorf("the error shows the token: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(credentials{Endpoint: "http://cloud", Token: "s3cret"}, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
