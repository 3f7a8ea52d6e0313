package console

import (
	"strings"
	"testing"
)

// TestRefusal has lines of cloud-init 22.4 and Ignition 2.27.
func TestRefusal(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"None": {"[    9.1] cloud-init[301]: Cloud-init v. 22.4.2 finished\nlogin:\n", ""},
		"NotYAML": {
			`[    9.1] cloud-init[301]: 2026-11-23 12:36:00,004 - util.py[WARNING]: Failed loading yaml blob. Invalid format at line 1 column 5: "mapping values are not allowed here` + "\nlogin:\n",
			`2026-11-23 12:36:00,004 - util.py[WARNING]: Failed loading yaml blob. Invalid format at line 1 column 5: "mapping values are not allowed here`,
		},
		"TheCauseComesFirst": {
			"util.py[WARNING]: Failed loading yaml blob. Invalid format at line 3\ncloud_config.py[WARNING]: Failed at merging in cloud config part from part-001: empty cloud config\n",
			"util.py[WARNING]: Failed loading yaml blob. Invalid format at line 3",
		},
		"NoTypeThatItKnows": {
			"2026-11-23T12:00:00Z 2026-11-23 12:36:00,004 - __init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: 'b'hello'...'\n",
			"2026-11-23 12:36:00,004 - __init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: 'b'hello'...'",
		},
		"AModuleFailed": {
			"2026 - util.py[WARNING]: Running module scripts-user (<module 'cloudinit.config.cc_scripts_user' from '/x.py'>) failed\n",
			"2026 - util.py[WARNING]: Running module scripts-user (<module 'cloudinit.config.cc_scripts_user' from '/x.py'>) failed",
		},
		"Ignition": {
			"[    3.4] ignition[430]: failed to fetch config: config is not valid\n[    3.4] ignition[430]: CRITICAL : Ignition failed: config is not valid\n[    3.5] systemd[1]: reached emergency\n",
			"CRITICAL : Ignition failed: config is not valid",
		},
		"ServicesOfIgnition": {"[FAILED] Failed to start ignition-fetch.service - Ignition (fetch).\n", "[FAILED] Failed to start ignition-fetch.service - Ignition (fetch)."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Refusal(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if got := Refusal("Ignition failed: " + strings.Repeat("x", 1000)); len(got) != maxOutput {
		t.Errorf("%d bytes", len(got))
	}
}

func TestLastLines(t *testing.T) {
	if got, want := LastLines("a\n[  1.0] b[1]: c\nd\ne\n"), "c | d | e"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := LastLines(""); got != "" {
		t.Errorf("got %q", got)
	}
}
