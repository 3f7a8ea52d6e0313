package azure

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	fakeazure "github.com/drover-dev/drover/test/fakes/azure"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

func noUserData(context.Context) (string, error) { return "", nil }

// azuretestGroup is a role in one resource group, and azuretestRights the right to read roles.
func azuretestGroup(group string) azuretest.Assignment {
	return azuretest.Assignment{ResourceGroup: group, Actions: fakeazure.Actions}
}

func azuretestRights() azuretest.Assignment {
	return azuretest.Assignment{Actions: []string{"Microsoft.Authorization/permissions/read"}}
}

// TestAVMIsCreatedWithoutASecret uses the token of a Kubernetes service account, which a file in the pod has, by workload
// identity.
func TestAVMIsCreatedWithoutASecret(t *testing.T) {
	for name, tc := range map[string]struct {
		subject string
		want    string // part of the error; empty for none
	}{
		"WithATokenThatEntraTrusts":  {"system:serviceaccount:crossplane-system:provider-azure", ""},
		"WithATokenThatEntraRefuses": {"system:serviceaccount:default:other", "PermissionDenied: "},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakeazure.Options{})
			token := ""
			c := cloudOf(l)
			c.Config.(*v1alpha1.ClusterProviderConfig).Spec.Credentials = v1alpha1.Credentials{Source: v1alpha1.CredentialsInjectedIdentity}
			trusted, err := l.Federate(fakeazure.Client, "https://oidc.example.org", "system:serviceaccount:crossplane-system:provider-azure")
			if err != nil {
				t.Fatal(err)
			}
			if token = trusted; tc.want != "" {
				if token, err = l.Federate("another", "https://oidc.example.org", tc.subject); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("AZURE_FEDERATED_TOKEN_FILE", file)
			t.Setenv("AZURE_CLIENT_ID", fakeazure.Client)
			t.Setenv("AZURE_TENANT_ID", "8f0f1c52-4a58-4f4c-a34f-5d7b9b1c0001")
			t.Setenv("AZURE_AUTHORITY_HOST", endpoint)
			c.Secrets = func() []string { return []string{token} }
			nativetest.Until(t, c, newVM(l, "vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
				if tc.want != "" {
					return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, tc.want)
				}
				return vm.Status.AtProvider.ProviderID != ""
			}, nil)
		})
	}
}
