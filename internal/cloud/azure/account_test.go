package azure

import (
	"encoding/base64"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

func TestCredentials(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(3))
		l := w.lister(t)
		mustList(t, l, 3)

		rotated := w.NewSecret(client)
		w.Revoke(client, w.secret)
		mustFail(t, t.Context(), l, "PermissionDenied: 401 InvalidAuthenticationToken: The access token is invalid.")
		err := mustFail(t, t.Context(), w.lister(t), "PermissionDenied: cannot get a token: 401 invalid_client: AADSTS7000215: Invalid client secret provided.")
		if strings.Contains(err.Error(), w.secret) || strings.Contains(err.Error(), "Trace ID") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
		if again := mustFail(t, t.Context(), w.lister(t), ""); again.Error() != err.Error() {
			t.Errorf("the error changes from call to call: %v, %v", err, again)
		}
		w.secret = rotated
		mustList(t, w.lister(t), 3)

		unknown := w.Credentials("11111111-0000-4000-8000-000000000000", "x", at)
		mustFail(t, t.Context(), w.lister(t, func(o *Options) { o.Credentials = unknown }), "PermissionDenied: cannot get a token: 400 unauthorized_client: AADSTS700016: Application with identifier '11111111-")
	})
}

func TestACertificateInPlaceOfASecret(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(3))
		right, err := w.NewCertificate(client)
		if err != nil {
			t.Fatal(err)
		}
		other, err := azuretest.New(azuretest.Options{}).NewCertificate(client)
		if err != nil {
			t.Fatal(err)
		}
		with := func(archive []byte) func(*Options) {
			return func(o *Options) {
				o.Credentials, o.SubscriptionID = []byte(`{"clientId": "`+client+`", "tenantId": "`+tenant+`", "activeDirectoryEndpointUrl": "`+at+`", "resourceManagerEndpointUrl": "`+at+`", "clientCertificate": "`+base64.StdEncoding.EncodeToString(archive)+`"}`), subscription
			}
		}
		mustList(t, w.lister(t, with(right)), 3)
		mustFail(t, t.Context(), w.lister(t, with(other)), "PermissionDenied: cannot get a token: 401 invalid_client: AADSTS700027: The certificate with identifier used to sign the client assertion is not registered on application.")
	})
}

func TestOptionsThatAreNotValidAreRefusedAtOnce(t *testing.T) {
	const rest = `"tenantId": "t", "subscriptionId": "` + subscription + `"`
	cases := map[string]struct {
		o    Options
		want string
	}{
		"TheSecretIsEmpty":            {Options{Credentials: []byte{}}, `credentials: must be JSON like {"clientId": "..."`},
		"TheSecretIsNotJSON":          {Options{Credentials: []byte("hunter2")}, `credentials: must be JSON like {"clientId": "..."`},
		"ThereIsNoClientID":           {Options{Credentials: []byte(`{"clientSecret": "hunter2", ` + rest + `}`)}, "credentials: clientId: must not be empty"},
		"ThereIsNoTenantID":           {Options{Credentials: []byte(`{"clientSecret": "hunter2", "clientId": "c"}`)}, "credentials: tenantId: must not be empty"},
		"ThereIsNoClientSecret":       {Options{Credentials: []byte(`{"clientId": "c", ` + rest + `}`)}, "credentials: clientSecret: must not be empty, unless there is a clientCertificate"},
		"TheCertificateIsNone":        {Options{Credentials: []byte(`{"clientId": "c", "clientCertificate": "aHVudGVyMg==", ` + rest + `}`)}, "credentials: clientCertificate: must be a certificate and its private key, as a PKCS#12 archive in base64"},
		"TheCertificateIsNotBase64":   {Options{Credentials: []byte(`{"clientId": "c", "clientCertificate": "hunter2!", ` + rest + `}`)}, "credentials: clientCertificate: must be a certificate and its private key, as a PKCS#12 archive in base64"},
		"NothingNamesTheSubscription": {Options{Credentials: []byte(`{"clientId": "c", "clientSecret": "hunter2", "tenantId": "t"}`)}, `subscriptionID: invalid value "": must be a UUID`},
		"TheSubscriptionIsAName":      {Options{SubscriptionID: "production", Credentials: []byte(`{"clientId": "c", "clientSecret": "hunter2", ` + rest + `}`)}, `subscriptionID: invalid value "production": must be a UUID`},
		"TheEndpointIsNotEncrypted":   {Options{Endpoint: "http://azure.example.org", Credentials: []byte(`{"clientId": "c", "clientSecret": "hunter2", ` + rest + `}`)}, `endpoint: invalid value "http://azure.example.org": must be a URL that begins with https://`},
		"TheTenantIsNone":             {Options{Credentials: []byte(`{"clientId": "c", "clientSecret": "hunter2", "tenantId": "../x", "subscriptionId": "` + subscription + `"}`)}, "invalid tenantID"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := New(t.Context(), tc.o)
			if l != nil || err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// Resource Graph answers with success, and leaves out resources that the credentials may not read.
func TestNothingIsConcludedFromAListOfWhichTheRightsHideAPart(t *testing.T) {
	least := []string{"Microsoft.Compute/virtualMachines/read", "Microsoft.Authorization/permissions/read"}
	cases := map[string]struct {
		assignments []azuretest.Assignment
		want        string
	}{
		"TheLeastRights":              {assignments: []azuretest.Assignment{{Actions: least}}},
		"TwoRolesTogether":            {assignments: []azuretest.Assignment{{Actions: least[:1]}, {Actions: least[1:]}}},
		"AnotherRoleGrantsWhatOneNot": {assignments: []azuretest.Assignment{{Actions: []string{"*"}, NotActions: []string{"Microsoft.Compute/*"}}, {Actions: least[:1]}}},
		"ARoleInOneResourceGroup":     {assignments: []azuretest.Assignment{{ResourceGroup: "Production-Nodes", Actions: azuretest.Reader}}, want: "PermissionDenied: 403 AuthorizationFailed: The client '"},
		"ARoleInOneResourceGroupAndAnotherAtTheSubscription": {
			assignments: []azuretest.Assignment{{ResourceGroup: "Production-Nodes", Actions: azuretest.Reader}, {Actions: least[1:]}},
			want:        "PermissionDenied: the credentials may not do Microsoft.Compute/virtualMachines/read at the subscription " + subscription + " itself",
		},
		"ARoleThatExceptsVMs": {
			assignments: []azuretest.Assignment{{Actions: azuretest.Reader, NotActions: []string{"microsoft.compute/*/read"}}},
			want:        "PermissionDenied: the credentials may not do Microsoft.Compute/virtualMachines/read",
		},
		"NoRole": {want: "PermissionDenied: 400 NoValidSubscriptionsInQueryRequest: There must be at least one subscription"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
				other := vm("b")
				other.ResourceGroup = "other-nodes"
				w.state.Set([]azuretest.VM{vm("a"), other})
				w.Assign(client, tc.assignments...)
				if tc.want == "" {
					mustList(t, w.lister(t), 2)
					return
				}
				mustFail(t, t.Context(), w.lister(t), tc.want)
			})
		})
	}
}

func TestResourcesNeedRightsOfTheirOwn(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		w.Assign(client, azuretest.Assignment{Actions: []string{"Microsoft.Compute/*/read", "Microsoft.Network/networkInterfaces/read", "Microsoft.Authorization/permissions/read"}})
		found, complete, err := w.lister(t).ListResources(t.Context(), ours)
		if len(found) > 0 || complete || err == nil || !strings.Contains(err.Error(), "may not do Microsoft.Network/publicIPAddresses/read") {
			t.Errorf("%d resources, complete: %t, error %v", len(found), complete, err)
		}
	})
}

func TestTheRightsAreAPartOfTheList(t *testing.T) {
	inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
		w.state.Set(vms(3))
		w.Break(fakes.Fault{Call: azuretest.Permissions(subscription), Status: 503, Code: "ServiceUnavailable", Message: "sorry"})
		mustFail(t, t.Context(), w.lister(t), "503 ServiceUnavailable: sorry")
	})
}

func TestThePodsIdentity(t *testing.T) {
	ofThePod := func(o *Options) { o.Credentials, o.Endpoint, o.SubscriptionID = nil, at, strings.ToUpper(subscription) }
	t.Run("AFederatedTokenOfItsServiceAccount", func(t *testing.T) {
		inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
			w.state.Set(vms(3))
			right, err := w.Federate(client, "https://issuer.example.org", "system:serviceaccount:crossplane-system:provider-inventory")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "token")
			t.Setenv("AZURE_TENANT_ID", tenant)
			t.Setenv("AZURE_CLIENT_ID", client)
			t.Setenv("AZURE_AUTHORITY_HOST", at)
			t.Setenv("AZURE_FEDERATED_TOKEN_FILE", file)
			write(t, file, right[:len(right)-4]+"AAAA")
			// The SDK reads the file again after some minutes, a Lister of its own at once.
			mustFail(t, t.Context(), w.lister(t, ofThePod), "PermissionDenied: cannot get a token: 401 invalid_client: AADSTS700213: No matching federated identity record found")
			write(t, file, right)
			mustList(t, w.lister(t, ofThePod), 3)
		})
	})
	t.Run("TheManagedIdentityOfItsMachine", func(t *testing.T) {
		inWorld(t, azuretest.Options{}, func(t *testing.T, w *world) {
			w.state.Set(vms(3))
			t.Setenv("AZURE_FEDERATED_TOKEN_FILE", "")
			t.Setenv("AZURE_CLIENT_ID", client)
			mustFail(t, t.Context(), w.lister(t, ofThePod), "Identity not found")
			w.SetMachineIdentity(client)
			mustList(t, w.lister(t, ofThePod), 3)
		})
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheCloudOfAnEndpoint(t *testing.T) {
	cases := map[string]struct {
		endpoint                string
		c                       credentials
		host, manager, audience string
	}{
		"ThePublicCloud":   {"", credentials{}, "https://login.microsoftonline.com/", "https://management.azure.com", "https://management.core.windows.net/"},
		"China":            {"https://management.chinacloudapi.cn/", credentials{}, "https://login.chinacloudapi.cn/", "https://management.chinacloudapi.cn", "https://management.core.chinacloudapi.cn/"},
		"APrivateEndpoint": {"https://arm.example.org", credentials{}, "https://login.microsoftonline.com/", "https://arm.example.org", "https://management.core.windows.net/"},
		"APrivateCloud":    {"https://arm.example.org", credentials{ActiveDirectoryEndpoint: "https://login.example.org", ManagementEndpoint: "https://management.example.org"}, "https://login.example.org", "https://arm.example.org", "https://management.example.org"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := cloudOf(tc.endpoint, tc.c)
			manager := got.Services[cloud.ResourceManager]
			if err != nil || got.ActiveDirectoryAuthorityHost != tc.host || manager.Endpoint != tc.manager || manager.Audience != tc.audience {
				t.Errorf("%+v, error %v", got, err)
			}
		})
	}
}

// A simulator of VMs stands behind a server, and a provider in a process of its own calls it.
func TestTheFakeBehindAServer(t *testing.T) {
	state := &azuretest.Memory{}
	state.Set(vms(3))
	fake := azuretest.New(azuretest.Options{State: state, Tenant: tenant, Subscription: subscription})
	fake.Assign(client, azuretest.Assignment{Actions: azuretest.Reader})
	server := httptest.NewTLSServer(fake)
	defer server.Close()
	l, err := New(t.Context(), Options{Credentials: fake.Credentials(client, fake.NewSecret(client), server.URL), Transport: server.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	mustList(t, l, 3)
}
