package systemd

import (
	"slices"
	"testing"
)

func TestStarted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		command, want []string
	}{
		"Start":        {"a unit is started", []string{"systemctl", "start", "a.service"}, []string{"a.service"}},
		"NoSuffix":     {"systemd adds the suffix of a service", []string{"/bin/systemctl", "restart", "a"}, []string{"a.service"}},
		"EnableNow":    {"several units, and flags between them", []string{"systemctl", "enable", "--now", "--no-block", "a", "b.service"}, []string{"a.service", "b.service"}},
		"EnableOnly":   {"it starts at the next boot", []string{"systemctl", "enable", "a"}, nil},
		"DaemonReload": {"no unit is started", []string{"systemctl", "daemon-reload"}, nil},
		"Another":      {"another program", []string{"service", "start", "a"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Started(tc.command); !slices.Equal(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestEnvironmentFilesAreUnescaped(t *testing.T) {
	files := map[string]string{
		"/etc/systemd/system/a.service": "[Service]\nEnvironmentFile=/env\nExecStart=/bin/a $A\n",
		"/env":                          `A="\$(x) \"y\" \\ ` + "\\`\"\n",
	}
	argv, env, err := CommandLine(files, "a.service")
	if want := "$(x) \"y\" \\ `"; err != nil || env["A"] != want || len(argv) < 2 {
		t.Errorf("%q, %q, %v, want %q", argv, env, err, want)
	}
}
