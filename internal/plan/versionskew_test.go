package plan

import (
	"strings"
	"testing"
)

func TestVersionSkew(t *testing.T) {
	const older = "more than 3 minor versions older than"
	cases := map[string]struct {
		reason             string
		kubelet, apiServer string
		want               string
	}{
		"Same":                          {"Most clusters have one version.", "v1.35.4", "v1.35.4", ""},
		"OneMinorOlder":                 {"The API server is upgraded first.", "v1.34.9", "v1.35.0", ""},
		"ThreeMinorsOlder":              {"That is the limit of Kubernetes.", "v1.32.0", "v1.35.4", ""},
		"FourMinorsOlder":               {"It is beyond the limit.", "v1.31.14", "v1.35.4", older},
		"OneMinorNewer":                 {"A kubelet is never newer.", "v1.36.0", "v1.35.4", "newer than"},
		"ANewerPatch":                   {"Patches do not change the API.", "v1.35.9", "v1.35.0", ""},
		"APreRelease":                   {"It is of the minor version of its release.", "v1.36.0-alpha.1", "v1.36.0-beta.0", ""},
		"APreReleaseOfTheNextMinor":     {"It may need what the API server does not have.", "v1.36.0-alpha.1", "v1.35.4", "newer than"},
		"AnAPIServerOfAVendor":          {"Vendors add suffixes.", "v1.33.1", "v1.33.1-gke.100", ""},
		"AnOlderAPIServerOfAVendor":     {"A suffix is no version.", "v1.34.0", "v1.33.1-gke.1340", "newer than"},
		"AnAPIServerWithBuildMetadata":  {"RKE2 and k3s add it.", "v1.32.4", "v1.32.4+rke2r1", ""},
		"AKubeletOfAVendor":             {"Users write the version of the binary.", "v1.33.1-gke.100", "v1.33.1-gke.100", ""},
		"AKubeletWithBuildMetadata":     {"Users write the version of the binary.", "v1.33.1+k3s1", "v1.32.9+k3s1", "newer than"},
		"AnAPIServerWithAPlus":          {"EKS reported such versions.", "v1.29.0", "v1.29+", ""},
		"AnAPIServerWithoutV":           {"Some proxies leave it out.", "v1.36.0", "1.35.4", "newer than"},
		"TwoDigitsAreNumbers":           {"Version 1.9 is older than 1.10.", "v1.10.0", "v1.9.0", "newer than"},
		"TheFirstMinors":                {"There is nothing below 1.0.", "v1.0.0", "v1.2.0", ""},
		"AnotherMajor":                  {"Its policy is not known, and it is newer.", "v2.0.0", "v1.35.4", "newer than"},
		"AnOlderMajor":                  {"It is older than any minor version.", "v1.35.4", "v2.0.0", older},
		"AnAPIServerThatDoesNotSay":     {"Nothing is known.", "v1.35.4", "", ""},
		"AnAPIServerThatSaysSomething":  {"Nothing is known.", "v1.35.4", "unknown", ""},
		"AKubeletVersionThatIsNoNumber": {"The schema refuses it.", "latest", "v1.35.4", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := VersionSkew(tc.kubelet, tc.apiServer)
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("%s\ngot %+v", tc.reason, got)
			case tc.want != "" && (got == nil || got.Reason != "VersionSkew" || !strings.Contains(got.Message, tc.want)):
				t.Errorf("%s\nwant %q, got %+v", tc.reason, tc.want, got)
			case got != nil && (!strings.Contains(got.Message, `"`+tc.kubelet+`"`) || !strings.Contains(got.Message, tc.apiServer)):
				t.Errorf("the message does not have both versions: %s", got.Message)
			}
		})
	}
}

func TestTheMessageOfAVersionSkewHasWhatIsAllowed(t *testing.T) {
	want := `spec.version: invalid value "v1.36.1": the kubelet is newer than the API server of the target cluster, which has version v1.35.4; allowed are v1.32 to v1.35`
	if got := VersionSkew("v1.36.1", "v1.35.4"); got == nil || got.Message != want {
		t.Errorf("want %q, got %+v", want, got)
	}
}
