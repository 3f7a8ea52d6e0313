package inventories

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	digitaloceanv1alpha1 "github.com/drover-dev/drover/apis/digitalocean/v1alpha1"
	awsv1alpha1 "github.com/drover-dev/drover/apis/upjet-aws/v1alpha1"
	azurev1alpha1 "github.com/drover-dev/drover/apis/upjet-azure/v1alpha1"
	upjetgcpv1alpha1 "github.com/drover-dev/drover/apis/upjet-gcp/v1alpha1"
	yandexv1alpha1 "github.com/drover-dev/drover/apis/yandex/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes/awstest"
	"github.com/drover-dev/drover/test/fakes/azuretest"
	"github.com/drover-dev/drover/test/fakes/digitaloceantest"
	"github.com/drover-dev/drover/test/fakes/gcptest"
	"github.com/drover-dev/drover/test/fakes/yandextest"
)

// A private cloud has an API whose certificate a private authority signed. It returns the bundle
// with that, and connects with any bundle.
type private func(t *testing.T) (bundle []byte, connect func(ctx context.Context, bundle []byte) (inventory.Lister, error))

var privates = map[string]private{
	"AWS": func(t *testing.T) ([]byte, func(context.Context, []byte) (inventory.Lister, error)) {
		s := awstest.New(&awstest.Memory{}, awstest.Options{})
		s.Admit("AKIA", awstest.Account{ID: "111122223333", Secret: "s3cret"})
		url, bundle := serve(t, s)
		return bundle, func(ctx context.Context, bundle []byte) (inventory.Lister, error) {
			pc, i := &awsv1alpha1.ClusterProviderConfig{}, &awsv1alpha1.VirtualMachineInventory{}
			pc.Spec.Endpoint, pc.Spec.CABundle, i.Spec.ForProvider.Region = url, bundle, "eu-central-1"
			return rowOf[awsConfig, awsInventory](t, awsv1alpha1.SchemeGroupVersion).
				connect(ctx, []byte("[default]\naws_access_key_id = AKIA\naws_secret_access_key = s3cret\n"), pc, i)
		}
	},
	"Azure": func(t *testing.T) ([]byte, func(context.Context, []byte) (inventory.Lister, error)) {
		const subscription = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
		c := azuretest.New(azuretest.Options{State: &azuretest.Memory{}, Tenant: "t", Subscription: subscription})
		c.Assign("c", azuretest.Assignment{Actions: azuretest.Reader})
		url, bundle := serve(t, c)
		secret := c.Credentials("c", c.NewSecret("c"), url)
		return bundle, func(ctx context.Context, bundle []byte) (inventory.Lister, error) {
			pc := &azurev1alpha1.ClusterProviderConfig{}
			pc.Spec.SubscriptionID, pc.Spec.Endpoint, pc.Spec.CABundle = subscription, url, bundle
			return rowOf[azureConfig, azureInventory](t, azurev1alpha1.SchemeGroupVersion).connect(ctx, secret, pc, nil)
		}
	},
	"DigitalOcean": func(t *testing.T) ([]byte, func(context.Context, []byte) (inventory.Lister, error)) {
		url, bundle := serve(t, digitaloceantest.New(digitaloceantest.Options{
			State:  func() digitaloceantest.Account { return digitaloceantest.Account{} },
			Tokens: func() map[string]digitaloceantest.Token { return map[string]digitaloceantest.Token{"s3cret": {}} },
		}))
		return bundle, func(ctx context.Context, bundle []byte) (inventory.Lister, error) {
			pc := &digitaloceanv1alpha1.ClusterProviderConfig{}
			pc.Spec.Endpoint, pc.Spec.CABundle = url, bundle
			return rowOf[digitaloceanConfig, digitaloceanInventory](t, digitaloceanv1alpha1.SchemeGroupVersion).connect(ctx, []byte("s3cret"), pc, nil)
		}
	},
	"GoogleCloud": func(t *testing.T) ([]byte, func(context.Context, []byte) (inventory.Lister, error)) {
		const account = "inventory@my-project.iam.gserviceaccount.com"
		c := gcptest.New(gcptest.Options{State: &gcptest.Memory{}, Project: "my-project"})
		c.Grant(account, gcptest.Viewer...)
		url, bundle := serve(t, c)
		secret, _, err := c.NewKey(account, url)
		if err != nil {
			t.Fatal(err)
		}
		return bundle, func(ctx context.Context, bundle []byte) (inventory.Lister, error) {
			pc := &upjetgcpv1alpha1.ClusterProviderConfig{}
			pc.Spec.ProjectID, pc.Spec.Endpoint, pc.Spec.CABundle = "my-project", url, bundle
			return rowOf[gcpConfig, gcpInventory](t, upjetgcpv1alpha1.SchemeGroupVersion).connect(ctx, secret, pc, nil)
		}
	},
	"YandexCloud": func(t *testing.T) ([]byte, func(context.Context, []byte) (inventory.Lister, error)) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		s, err := yandextest.Start(yandextest.Options{
			State: func(string) yandextest.Folder { return yandextest.Folder{} },
			Keys: func() map[string]yandextest.Key {
				return map[string]yandextest.Key{"k": {ServiceAccount: "sa", Public: &key.PublicKey, Folders: []string{"f"}}}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := json.Marshal(map[string]string{"id": "k", "service_account_id": "sa", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))})
		if err != nil {
			t.Fatal(err)
		}
		return s.CACertificates, func(ctx context.Context, bundle []byte) (inventory.Lister, error) {
			pc := &yandexv1alpha1.ClusterProviderConfig{}
			pc.Spec.FolderID, pc.Spec.Endpoint, pc.Spec.CABundle = "f", "https://"+s.Address, bundle
			return rowOf[yandexConfig, yandexInventory](t, yandexv1alpha1.SchemeGroupVersion).connect(ctx, secret, pc, nil)
		}
	},
}

func serve(t *testing.T, h http.Handler) (url string, bundle []byte) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func TestACloudIsTrustedByTheBundleOfItsConfiguration(t *testing.T) {
	for name, p := range privates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			right, connect := p(t)
			if err := tryList(t, connect, right); err != nil {
				t.Error(err)
			}
			if err := tryList(t, connect, nil); err == nil {
				t.Error("the authorities of the system are enough")
			}
			if err := tryList(t, connect, []byte("hello")); err == nil || err.Error() != "caBundle: must be certificates in PEM format" {
				t.Errorf("error %v", err)
			}
		})
	}
}

// tryList in a time in which no call is repeated for long.
func tryList(t *testing.T, connect func(context.Context, []byte) (inventory.Lister, error), bundle []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	l, err := connect(ctx, bundle)
	if err != nil {
		return err
	}
	_, _, err = l.List(ctx, installation)
	return err
}
