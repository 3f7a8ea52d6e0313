package nutanix

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	fakenutanix "github.com/drover-dev/drover/test/fakes/nutanix"
)

func TestTheCertificateOfPrismCentralIsVerified(t *testing.T) {
	p := fakenutanix.New(fakenutanix.Options{})
	p.SetUser("drover", fakenutanix.User{Password: "p"})
	server := httptest.NewTLSServer(p)
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tc := range map[string]struct {
		bundle   []byte
		insecure *bool
		want     string
	}{
		"WithoutItsCA": {nil, nil, "certificate signed by unknown authority"},
		"WithItsCA":    {ca, nil, ""},
		"ByRequest":    {nil, ptr.To(true), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := newClient(v1alpha1.ProviderConfigSpec{Server: server.URL, CABundle: tc.bundle, InsecureSkipVerify: tc.insecure}, credentials{"drover", "p"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = get[cluster](t.Context(), c, pathClusters+"/"+fakenutanix.ClusterEast)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestErrorsOfTheAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body, want string
		notFound   bool
	}{
		"Version4": {404, `{"data":{"error":[{"message":"not there","code":"VMM-30100","errorGroup":"VM_NOT_FOUND"},{"message":"again"}]}}`, "not there; again (status 404, VMM-30100, VM_NOT_FOUND)", true},
		"Schema": {400, `{"data":{"error":{"statusCode":400,"error":"Request failed","validationErrorMessages":[{"attributePath":"$.name","message":"is required"}]}}}`,
			"Request failed: $.name is required (status 400)", false},
		"Version3":       {403, `{"state":"ERROR","message_list":[{"reason":"ACCESS_DENIED","message":"No permission"}]}`, "No permission (status 403, ACCESS_DENIED)", false},
		"AProxy":         {502, `<html>`, "Bad Gateway (status 502)", false},
		"AProxyWithA404": {404, `<html>`, "Not Found (status 404)", false},
		"AnEmptyBody":    {503, ``, "Service Unavailable (status 503)", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := errorOf(tc.status, []byte(tc.body))
			if err.Error() != tc.want || isNotFound(err) != tc.notFound {
				t.Errorf("%q, not found %t; want %q", err, isNotFound(err), tc.want)
			}
		})
	}
}

func TestCredentialsAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		c    credentials
		want string
	}{
		"AUserWithAPassword": {credentials{"drover@example.org", "p"}, ""},
		"NoUser":             {credentials{"", "p"}, "credentials: username"},
		"AColon":             {credentials{"a:b", "p"}, "credentials: username"},
		"NoPassword":         {credentials{"drover", ""}, "credentials: password"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.c.validate()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestUserDataHasALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		size    int
		refused bool
	}{
		"AtTheLimit":    {24576, false},
		"AboveTheLimit": {24577, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := body(v1alpha1.VirtualMachineParameters{}, "u", strings.Repeat("x", tc.size), resolved{})
			var e *native.Error
			if (err != nil) != tc.refused || tc.refused && (!errors.As(err, &e) || !strings.Contains(err.Error(), "at most 24576")) {
				t.Errorf("error %v", err)
			}
		})
	}
}
