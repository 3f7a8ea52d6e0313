package guest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/userdata"
)

// userData as Drover renders it for a cloud with a command.
func userData(t *testing.T, command string) []byte {
	t.Helper()
	d, err := userdata.New(userdata.Input{
		Hostname: "workers-1", Version: "v1.35.4",
		ExternalCloudProvider: true, ProviderIDCommand: command,
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Encode(machinev1alpha1.CloudInit)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheProviderIDIsWhatTheMetadataServiceGivesTheScript(t *testing.T) {
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "http://169.254.169.254/id" || r.Header.Get("Flavor") != "sweet" {
			http.Error(w, "unknown", http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprint(w, "i-7")
	})
	cases := map[string]struct{ command, want string }{
		"OfTheService":  {`id=$(curl -sf -H "Flavor: sweet" http://169.254.169.254/id) && echo "some:///$id"`, "some:///i-7"},
		"OfTheHost":     {`echo "some://$(hostname)"`, "some://workers-1"},
		"OfVMwareTools": {`vmtoolsd --cmd 'info-get guestinfo.ovfEnv' | sed -n 's|.*oe:value="\(.*\)".*|some://\1|p'`, "some://i-8"},
		"OfTheSMBIOS":   {`dmidecode -s system-uuid | tr 'A-Z' 'a-z' | sed 's|^|some://|'`, "some://0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := runProviderID(t.Context(), userData(t, tc.command), Request{ID: "i-7", Name: "workers-1", Metadata: service, SystemUUID: "0B0E7D2C-6A52-4A0B-9B53-1F6F6C8C9D11", OVFEnvironment: `<Property oe:key="id" oe:value="i-8"/>`})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out), `providerID: "`+tc.want+`"`) {
				t.Errorf("not %s:\n%s", tc.want, out)
			}
		})
	}
}

func TestAProviderIDCommandThatFailsSaysWhatItAsked(t *testing.T) {
	_, err := runProviderID(t.Context(), userData(t, `id=$(curl -sf http://169.254.169.254/other) && echo "some://$id"`), Request{ID: "i-7", Name: "workers-1"})
	if err == nil || !strings.Contains(err.Error(), "GET http://169.254.169.254/other") {
		t.Errorf("%v", err)
	}
}

func TestUserDataWithoutScriptStaysAsItIs(t *testing.T) {
	for name, in := range map[string]string{"NoScript": string(userData(t, "")), "NoCloudConfig": "#!/bin/sh\necho hello\n"} {
		t.Run(name, func(t *testing.T) {
			out, err := runProviderID(t.Context(), []byte(in), Request{ID: "i-7", Name: "workers-1"})
			if err != nil || string(out) != in {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
