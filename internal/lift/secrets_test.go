package lift

import (
	"context"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
)

func secretKey(name, key string) *xpv2.LocalSecretKeySelector {
	return &xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: name}, Key: key}
}

func TestCheckSecrets(t *testing.T) {
	there := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there"},
		Data:       map[string][]byte{"userData": []byte("top secret")},
	}
	cases := map[string]struct {
		forProvider, initProvider *xpv2.LocalSecretKeySelector
		err                       string
	}{
		"AVMWithoutUserDataIsFine":      {},
		"AKeyThatIsThereIsFine":         {forProvider: secretKey("there", "userData")},
		"AMissingSecretIsNamed":         {forProvider: secretKey("gone", "userData"), err: `spec.forProvider.userDataSecretRef: cannot get Secret "gone"`},
		"AMissingKeyIsNamed":            {forProvider: secretKey("there", "other"), err: `spec.forProvider.userDataSecretRef: no key "other" in Secret "there", which has only ["userData"]`},
		"TheInitProviderIsLookedAtToo":  {initProvider: secretKey("gone", "userData"), err: `spec.initProvider.userDataSecretRef: cannot get Secret "gone"`},
		"TheInitProvidersKeyMayBeThere": {initProvider: secretKey("there", "userData")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm"}}
			vm.Spec.ForProvider.UserDataSecretRef = tc.forProvider
			vm.Spec.InitProvider.UserDataSecretRef = tc.initProvider
			err := checkSecrets(context.Background(), fake.NewClientBuilder().WithObjects(there).Build(), vm)
			switch {
			case tc.err == "" && err != nil:
				t.Fatal(err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Fatalf("error %v, want one with %q", err, tc.err)
			case err != nil && strings.Contains(err.Error(), "top secret"):
				t.Fatalf("the error shows the secret: %v", err)
			}
		})
	}
}
