package metadata

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHandler(t *testing.T) {
	h, err := Handler(VM{ID: "vm-1", Hostname: "w1", Secret: "s3cret", UserData: []byte("#cloud-config\n"), ProviderID: "local:///zone-a/vm-1"})
	if err != nil {
		t.Fatal(err)
	}
	unnamed, err := Handler(VM{ID: "vm-2", Hostname: "w2", Secret: "other"})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		of     http.Handler
		path   string
		status int
		body   string
	}{
		"MetaData":          {"cloud-init needs an instance ID and a host name", h, "/nocloud/s3cret/meta-data", 200, "instance-id: vm-1\nlocal-hostname: w1\n"},
		"UserData":          {"user data is passed byte for byte", h, "/nocloud/s3cret/user-data", 200, "#cloud-config\n"},
		"VendorData":        {"cloud-init before 23.3 warns if vendor data is missing", h, "/nocloud/s3cret/vendor-data", 200, ""},
		"WrongSecret":       {"the documents of a VM need its secret", h, "/nocloud/other/user-data", 404, "404 page not found\n"},
		"NoSecret":          {"no path lists the secrets", h, "/nocloud/", 404, "404 page not found\n"},
		"ProviderID":        {"the provider ID needs no secret", h, "/v1/provider-id", 200, "local:///zone-a/vm-1\n"},
		"WithoutProviderID": {"a VM without a provider ID is reported none", unnamed, "/v1/provider-id", 404, "404 page not found\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			tc.of.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
			if w.Code != tc.status || w.Body.String() != tc.body {
				t.Errorf("%s: got %d %q, want %d %q", tc.reason, w.Code, w.Body, tc.status, tc.body)
			}
		})
	}
}
