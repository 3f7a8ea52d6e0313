package userdata

import (
	"testing"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

func TestFill(t *testing.T) {
	const template = "$(token) $(server) $(ca.crt|base64) $(joinToken.uid) $(config.uid) $(this) stays"
	f := Filling{Token: "t", Server: "$(token)", CA: []byte("ca"), UID: "u", ConfigUID: "c"}
	cases := map[string]struct {
		reason   string
		encoding clusterv1alpha1.UserDataEncoding
		want     string
	}{
		"Plain": {
			reason:   "Every placeholder is replaced once, and values are not read as templates.",
			encoding: clusterv1alpha1.UserDataPlain,
			want:     "t $(token) Y2E= u c $(this) stays",
		},
		"Default": {
			reason: "User data without an encoding is plain.",
			want:   "t $(token) Y2E= u c $(this) stays",
		},
		"Base64": {
			reason:   "The user data is encoded as a whole, after it was filled.",
			encoding: clusterv1alpha1.UserDataBase64,
			want:     "dCAkKHRva2VuKSBZMkU9IHUgYyAkKHRoaXMpIHN0YXlz",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := string(f.Fill(template, tc.encoding)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestHash(t *testing.T) {
	base := Hash("a", clusterv1alpha1.UserDataPlain)
	cases := map[string]struct {
		reason string
		hash   string
		same   bool
	}{
		"DefaultEncoding":  {"Plain is the default encoding.", Hash("a", ""), true},
		"OtherEncoding":    {"Another encoding makes other user data.", Hash("a", clusterv1alpha1.UserDataBase64), false},
		"OtherTemplate":    {"Another template makes other user data.", Hash("b", clusterv1alpha1.UserDataPlain), false},
		"NoTemplateAtAll":  {"An empty template is not any other.", Hash("", clusterv1alpha1.UserDataPlain), false},
		"EncodingInsideIt": {"Template and encoding are kept apart.", Hash("aPlain", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if same := tc.hash == base; same != tc.same || tc.hash == "" {
				t.Errorf("%s\n%q and %q", tc.reason, tc.hash, base)
			}
		})
	}
}
