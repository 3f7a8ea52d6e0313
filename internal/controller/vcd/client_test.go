package vcd

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	fakevcd "github.com/drover-dev/drover/test/fakes/vcd"
)

func TestTheCertificateOfCloudDirectorIsVerified(t *testing.T) {
	d := fakevcd.New(fakevcd.Options{})
	d.AddOrganization(organization)
	d.SetUser(organization, username, fakevcd.User{Password: "p"})
	server := httptest.NewTLSServer(d)
	defer server.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, tc := range map[string]struct {
		bundle   []byte
		insecure bool
		want     string
	}{
		"WithItsCA":    {bundle, false, ""},
		"WithoutItsCA": {nil, false, "certificate"},
		"Unverified":   {nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := newClient(v1alpha1.ProviderConfigSpec{Server: server.URL, Organization: organization, CABundle: tc.bundle, InsecureSkipVerify: ptr.To(tc.insecure)}, credentials{Username: username, Password: "p"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.login(t.Context(), "")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestCredentialsAreComplete(t *testing.T) {
	for name, tc := range map[string]struct {
		credentials credentials
		want        string
	}{
		"AToken":            {credentials{APIToken: "t"}, ""},
		"APassword":         {credentials{Username: "u", Password: "p"}, ""},
		"Both":              {credentials{APIToken: "t", Username: "u"}, "not both"},
		"None":              {credentials{}, "username: must not be empty"},
		"AUserWithAColon":   {credentials{Username: "u:v", Password: "p"}, "must not contain a colon"},
		"AUserWithoutAWord": {credentials{Username: "u"}, "password: must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.credentials.validate()
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
		invisible  bool
	}{
		"XML":            {403, `<?xml version="1.0"?><Error xmlns="http://www.vmware.com/vcloud/v1.5" message="[ 2d1c ] No access to entity" majorErrorCode="403" minorErrorCode="ACCESS_TO_RESOURCE_IS_FORBIDDEN"/>`, "No access to entity (status 403, ACCESS_TO_RESOURCE_IS_FORBIDDEN)", true},
		"JSON":           {404, `{"minorErrorCode":"RESOURCE_NOT_FOUND","message":"[ 2d1c ] not there","stackTrace":null}`, "not there (status 404, RESOURCE_NOT_FOUND)", true},
		"OAuth":          {400, `{"error":"invalid_grant","error_description":"Invalid refresh token"}`, "Invalid refresh token (status 400, invalid_grant)", false},
		"AProxy":         {502, `<html><body>Bad</body></html>`, "Bad Gateway (status 502)", false},
		"AProxyWithA404": {404, `<html><body>Bad</body></html>`, "Not Found (status 404)", false},
		"AProxyWithA403": {403, `Forbidden`, "Forbidden (status 403)", false},
		"AnEmptyBody":    {503, ``, "Service Unavailable (status 503)", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := errorOf(tc.status, []byte(tc.body))
			if err.Error() != tc.want || isInvisible(err) != tc.invisible {
				t.Errorf("%q, invisible %t, want %q and %t", err, isInvisible(err), tc.want, tc.invisible)
			}
		})
	}
}

func TestDescriptionsAreReadAsTheyAreWritten(t *testing.T) {
	for _, metadata := range []map[string]string{nil, {"drover-installation": "1d"}} {
		name, installation := readDescription(describe("0b0e7d2c", metadata))
		if name != "0b0e7d2c" || installation != metadata["drover-installation"] {
			t.Errorf("read %q and %q of %v", name, installation, metadata)
		}
	}
	if name, _ := readDescription("Drover VM of a user, do not delete"); name != "" {
		t.Errorf("read %q of a description that a user wrote", name)
	}
}
