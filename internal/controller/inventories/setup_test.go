package inventories

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	awsv1alpha1 "github.com/drover-dev/drover/apis/upjet-aws/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/inventory"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestTheKindsOfARowAreItsTypes(t *testing.T) {
	s := scheme(t)
	if _, err := newObject[awsInventory](s, awsv1alpha1.SchemeGroupVersion.WithKind(inventoryv1alpha1.Kind)); err != nil {
		t.Error(err)
	}
	if _, err := newObject[awsConfig](s, awsv1alpha1.SchemeGroupVersion.WithKind(inventoryv1alpha1.Kind)); err == nil {
		t.Error("an inventory is taken for a configuration")
	}
	if _, err := newObject[awsConfig](s, awsv1alpha1.SchemeGroupVersion.WithKind("Bucket")); err == nil {
		t.Error("a kind that is not there is found")
	}
}

func TestTheCredentialsOfAnInventory(t *testing.T) {
	ref := &awsv1alpha1.SecretKeySelector{Namespace: "system", Name: "aws", Key: "credentials"}
	secret := func(data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "aws"}, Data: data}
	}
	config := func(c awsv1alpha1.Credentials) client.Object {
		pc := &awsv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		pc.Spec.Credentials = c
		return pc
	}
	bySecret := config(awsv1alpha1.Credentials{Source: awsv1alpha1.CredentialsSecret, SecretRef: ref})
	right := secret(map[string][]byte{"credentials": []byte("s3cret")})
	cases := map[string]struct {
		objects   []client.Object
		ref       string
		connect   error
		want, err string
	}{
		"AreInASecret":            {[]client.Object{bySecret, right}, "ClusterProviderConfig", nil, "s3cret", ""},
		"AreThoseOfThePod":        {[]client.Object{config(awsv1alpha1.Credentials{Source: awsv1alpha1.CredentialsInjectedIdentity})}, "ClusterProviderConfig", nil, "<nil>", ""},
		"LackTheirSecret":         {[]client.Object{bySecret}, "ClusterProviderConfig", nil, "", "spec.credentials.secretRef of the provider config: cannot get Secret system/aws"},
		"LackTheirKey":            {[]client.Object{bySecret, secret(nil)}, "ClusterProviderConfig", nil, "", `key "credentials" of Secret system/aws: must not be empty`},
		"LackTheirConfiguration":  {nil, "ClusterProviderConfig", nil, "", `spec.providerConfigRef: cannot get ClusterProviderConfig "default"`},
		"AreOfANamespacedConfig":  {[]client.Object{bySecret, right}, "ProviderConfig", nil, "", `spec.providerConfigRef.kind: invalid value "ProviderConfig": must be ClusterProviderConfig`},
		"AreRefusedByTheirLister": {[]client.Object{bySecret, right}, "ClusterProviderConfig", errors.New("no region"), "", `ClusterProviderConfig "default" of upjet-aws.drover.dev: no region`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			g := group[awsConfig, awsInventory]{version: awsv1alpha1.SchemeGroupVersion, connect: func(_ context.Context, secret []byte, _ awsConfig, _ awsInventory) (inventory.Lister, error) {
				if got = string(secret); secret == nil {
					got = "<nil>"
				}
				return nil, tc.connect
			}}
			i := &awsv1alpha1.VirtualMachineInventory{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
			i.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: tc.ref, Name: "default"})
			c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.objects...).Build()
			_, err := g.connector(c, providerconfig.Configs{GroupVersion: g.version, Cluster: &awsv1alpha1.ClusterProviderConfig{}}, newListers())(t.Context(), i)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if tc.err == "" && got != tc.want || strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("credentials %q, want %q, error %v", got, tc.want, err)
			}
		})
	}
}
