package userdata

import (
	"testing"

	"github.com/vincent-petithory/dataurl"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/gzipb64"
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
			got, err := f.Fill(template, Form{Encoding: tc.encoding})
			if err != nil || string(got) != tc.want {
				t.Errorf("%s\nwant %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestFillCompresses(t *testing.T) {
	got, err := Filling{Token: "t"}.Fill("token: $(token)", Form{Encoding: clusterv1alpha1.UserDataGzipBase64})
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := gzipb64.Decode(string(got)); err != nil || string(plain) != "token: t" {
		t.Errorf("%q, %v", plain, err)
	}
}

func TestPlaceholdersSurviveADataURL(t *testing.T) {
	f := Filling{Token: "t", Server: "https://[::1]:6443", CA: []byte{0xff, 0xef}, UID: "u", ConfigUID: "c"}
	for _, template := range []string{"$(token)", "a $(server) b", "$(ca.crt|base64)", "$(joinToken.uid)", "$(config.uid)", "100% \"\u00e9\" <$(token)>\n"} {
		plain, err := f.Fill(template, Form{})
		if err != nil {
			t.Fatal(err)
		}
		filled, err := f.Fill(dataURL(File{Content: template}), Form{})
		if err != nil {
			t.Fatal(err)
		}
		u, err := dataurl.DecodeString(string(filled))
		if err != nil {
			t.Errorf("%q becomes %q: %v", template, filled, err)
			continue
		}
		if string(u.Data) != string(plain) {
			t.Errorf("%q becomes %q, want %q", template, u.Data, plain)
		}
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
