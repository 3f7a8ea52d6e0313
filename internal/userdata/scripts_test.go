package userdata

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// runScript with programs that record how they were called, and variables.
func runScript(t *testing.T, script string, programs map[string]string, environment ...string) (output string, calls []string, err error) {
	t.Helper()
	bin, record := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	for name, body := range programs {
		text := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >>%s\n%s\n", name, record, body)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin"}, environment...)
	out, err := cmd.CombinedOutput()
	b, rerr := os.ReadFile(record)
	if rerr != nil && !os.IsNotExist(rerr) {
		t.Fatal(rerr)
	}
	return string(out), slices.Collect(strings.Lines(string(b))), err
}

func TestDownloadsAreInstalledByTheirDigestOnly(t *testing.T) {
	const program = "#!/bin/sh\necho right\n"
	digest := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	arch := runtime.GOARCH
	cases := map[string]struct {
		reason    string
		list      string // with URL and PATH in it
		served    string
		installed string
		want      string
		output    string
		requests  int
	}{
		"Right":            {"It has the digest.", arch + " " + digest(program) + " URL PATH\n", program, "", program, "", 1},
		"Forged":           {"The mirror has another one, with a checksum of its own.", arch + " " + digest(program) + " URL PATH\n", "#!/bin/sh\necho wrong\n", "", "", "does not have the digest", 1},
		"There":            {"The image has it.", arch + " " + digest(program) + " URL PATH\n", program, program, program, "", 0},
		"AnotherIsThere":   {"The image has another one.", arch + " " + digest(program) + " URL PATH\n", program, "old", program, "", 1},
		"OfOthers":         {"A digest for another architecture is none.", "other " + digest(program) + " URL PATH\n", program, "", "", "the class has no digest for " + arch, 0},
		"OfSeveral":        {"Each machine takes its own.", "other " + digest("x") + " URL PATH\n" + arch + " " + digest(program) + " URL PATH\n", program, "", program, "", 1},
		"ForgedIsNotSwept": {"What is installed stays, and nothing of the wrong one is left.", arch + " " + digest(program) + " URL PATH\n", "forged", "old", "old", "does not have the digest", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requests := 0
			mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				_, _ = w.Write([]byte(tc.served))
			}))
			defer mirror.Close()
			dir := t.TempDir()
			path := filepath.Join(dir, "bin", "program")
			if tc.installed != "" {
				write(t, tc.installed, path)
			}
			list := filepath.Join(dir, "list")
			write(t, strings.NewReplacer("URL", mirror.URL+"/a?b=c&d='", "PATH", path).Replace(tc.list), list)
			output, _, err := runScript(t, downloadScript, nil, "DROVER_DOWNLOADS="+list)
			if (err != nil) != (tc.output != "") || !strings.Contains(output, tc.output) {
				t.Errorf("%s\nwant %q, got %q, %v", tc.reason, tc.output, output, err)
			}
			got, err := os.ReadFile(path)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if string(got) != tc.want || requests != tc.requests {
				t.Errorf("%s\ninstalled %q, want %q; %d requests, want %d", tc.reason, got, tc.want, requests, tc.requests)
			}
			if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

func TestTheSystemTrustsTheCertificatesOfTheClass(t *testing.T) {
	has := map[string]string{"update-trust": ""}
	broken := map[string]string{"update-trust": "exit 1"}
	once := []string{"update-trust extract -x\n"}
	// A script and the programs that the system has by then.
	type step struct {
		script   string
		programs map[string]string
	}
	cases := map[string]struct {
		reason string
		steps  []step
		calls  []string
		fails  bool
	}{
		"BeforePackages":                  {"Packages may come from a mirror with such a certificate.", []step{{trustScript, has}}, once, false},
		"BeforePackagesWithoutTheCommand": {"A package brings the command.", []step{{trustScript, nil}}, nil, false},
		"AfterPackages":                   {"A package brought the command.", []step{{trustScript, nil}, {trustPackages, has}}, once, false},
		"NotAgainAfterPackages":           {"It takes long on a slow machine.", []step{{trustScript, has}, {trustPackages, has}}, once, false},
		"AfterPackagesWithoutTheCommand":  {"Nothing would trust the certificate.", []step{{trustScript, nil}, {trustPackages, nil}}, nil, true},
		"TheCommandFails":                 {"The step is tried again.", []step{{trustScript, broken}}, once, true},
		"ACommandThatFailedRunsAgain":     {"Nothing trusts the certificate yet.", []step{{trustScript, broken}, {trustPackages, has}}, slices.Concat(once, once), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			trusted := filepath.Join(t.TempDir(), "trusted")
			var all []string
			var failed error
			for _, s := range tc.steps {
				_, calls, err := runScript(t, s.script, s.programs, "TRUST_COMMAND=update-trust extract -x", "DROVER_TRUSTED="+trusted)
				all, failed = append(all, calls...), err
			}
			if (failed != nil) != tc.fails || !slices.Equal(all, tc.calls) {
				t.Errorf("%s\ncalls %q, want %q; %v", tc.reason, all, tc.calls, failed)
			}
		})
	}
}

func TestTheTimeServiceThatTheImageHasAsksTheServers(t *testing.T) {
	// systemctl as it answers for units that exist, of which some are active.
	systemctl := func(known, active string) map[string]string {
		return map[string]string{"systemctl": fmt.Sprintf(`for unit; do :; done
case $1 in
cat) case " %s " in *" $unit "*) exit 0 ;; esac; exit 1 ;;
is-active) case " %s " in *" $unit "*) exit 0 ;; esac; exit 3 ;;
esac`, known, active)}
	}
	cases := map[string]struct {
		reason        string
		known, active string
		want          string
		fails         bool
	}{
		"Active":  {"It runs, and reads the servers anew.", "timesyncd.service", "timesyncd.service", "systemctl try-restart timesyncd.service\n", false},
		"Stopped": {"Of those that are there, one has to run.", "chrony.service timesyncd.service", "", "systemctl enable --now chrony.service\n", false},
		"None":    {"The servers would never be asked.", "", "", "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			output, calls, err := runScript(t, timeScript, systemctl(tc.known, tc.active), "TIME_UNITS=chrony.service timesyncd.service")
			if (err != nil) != tc.fails || tc.want != "" && !slices.Contains(calls, tc.want) {
				t.Errorf("%s\ncalls %q, want %q; %v: %s", tc.reason, calls, tc.want, err, output)
			}
			if started := slices.ContainsFunc(calls, func(c string) bool { return strings.Contains(c, "enable") }); started != strings.Contains(tc.want, "enable") {
				t.Errorf("%s\ncalls %q", tc.reason, calls)
			}
		})
	}
}

func TestStepsAfterTheJoinWaitForTheCertificate(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubelet.conf")
	output, _, err := runScript(t, awaitJoin, map[string]string{"sleep": ""}, "DROVER_KUBECONFIG="+kubeconfig)
	if err == nil || !strings.Contains(output, "no client certificate yet") {
		t.Errorf("without one: %v: %s", err, output)
	}
	output, calls, err := runScript(t, awaitJoin, map[string]string{"sleep": "echo a >" + kubeconfig}, "DROVER_KUBECONFIG="+kubeconfig)
	if err != nil || len(calls) != 1 {
		t.Errorf("with one: %v: %s, %q", err, output, calls)
	}
}
