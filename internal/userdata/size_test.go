package userdata

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestUserDataThatIsTooLargeIsRefused(t *testing.T) {
	d := Document{Files: []File{
		{Path: "/small", Content: "a"},
		{Path: "/noise", Content: base64.StdEncoding.EncodeToString(noise(3000))},
		{Path: "/ca", Content: strings.Repeat("a", 9000)},
	}}
	template, err := d.Encode(machinev1alpha1.CloudInit)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		form   Form
		want   string
	}{
		"NoLimit":       {"A cloud without a limit takes all.", Form{}, ""},
		"Enough":        {"It fits.", Form{MaxBytes: 16384}, ""},
		"TooMuch":       {"It does not fit, and its largest files are named.", Form{MaxBytes: 13000}, "; the cloud takes at most 13000; the largest files: /ca (9000 bytes), /noise (4000 bytes), " + pathBootstrap},
		"Base64":        {"The limit is that of the bytes before base64.", Form{Encoding: clusterv1alpha1.UserDataBase64, MaxBytes: len(template)}, ""},
		"Compressed":    {"Compressed it fits.", Form{Encoding: clusterv1alpha1.UserDataGzipBase64, MaxBytes: 6000}, ""},
		"NotEvenSo":     {"Noise cannot be compressed.", Form{Encoding: clusterv1alpha1.UserDataGzipBase64, MaxBytes: 3000}, " bytes, compressed; the cloud takes at most 3000; the largest files: /ca"},
		"OneByteTooFew": {"The limit itself is allowed, and no byte more.", Form{MaxBytes: len(template) - 1}, "the cloud takes at most"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := d.CheckSize(string(template), tc.form)
			tooLarge := (*TooLargeError)(nil)
			if errors.As(err, &tooLarge) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			// The filled template is measured as well.
			_, err = Filling{}.Fill(string(template), tc.form)
			if errors.As(err, &tooLarge) != (tc.want != "") {
				t.Errorf("filled: %s\ngot %v", tc.reason, err)
			}
		})
	}
}

func TestALargeCABundleIsFoundWhenItIsFilledIn(t *testing.T) {
	const template = "ca: $(ca.crt|base64)"
	form := Form{MaxBytes: 4000}
	if err := (Document{}).CheckSize(template, form); err != nil {
		t.Errorf("a CA bundle of the usual size: %v", err)
	}
	if _, err := (Filling{CA: noise(3000)}).Fill(template, form); err == nil || !strings.Contains(err.Error(), "4004 bytes; the cloud takes at most 4000") {
		t.Errorf("a large one: %v", err)
	}
}
