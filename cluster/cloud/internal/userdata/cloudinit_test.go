package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	zipped := base64.StdEncoding.EncodeToString([]byte(gz("zipped")))
	cases := map[string]struct {
		in   string
		want Instance
	}{
		"FilesAreWrittenInEveryEncoding": {
			in: "#cloud-config\nhostname: w1\nwrite_files:\n" +
				"- {path: /plain, content: plain}\n" +
				"- {path: /b64, encoding: b64, content: aGVsbG8=}\n" +
				"- path: /folded\n  encoding: base64\n  content: |\n    aGVs\n    bG8=\n" +
				"- {path: /gz, encoding: gz+base64, content: " + zipped + "}\n" +
				"- {path: /binary, encoding: gzip, content: !!binary " + zipped + "}\n",
			want: Instance{Hostname: "w1", Files: map[string]string{
				"/plain": "plain", "/b64": "hello", "/folded": "hello", "/gz": "zipped", "/binary": "zipped"}},
		},
		"ALaterFileReplacesAndAppends": {
			in: "#cloud-config\nwrite_files:\n- {path: /a, content: old}\n- {path: /a, content: new}\n" +
				"- {path: //a, content: er, append: true}\n",
			want: Instance{Files: map[string]string{"/a": "newer"}},
		},
		"AnFQDNGivesTheHostName": {
			in:   "#cloud-config\nfqdn: w1.example.org\n",
			want: Instance{Hostname: "w1", Files: map[string]string{}},
		},
		"CommandsComeAsListsAndShellLines": {
			in: "#cloud-config\nruncmd:\n" +
				"- [/opt/install.sh, v1.35.4]\n" +
				"- A=b /bin/x 'two words' && systemctl enable --now kubelet\n" +
				"- until curl -f http://x; do sleep 1; done\n" +
				"- [sh, -ec, 'one; two $UNSET \"3\"']\n" +
				"- bash -c \"inner command\"\n" +
				"- echo $(hostname)\n",
			want: Instance{Files: map[string]string{}, Commands: [][]string{
				{"/opt/install.sh", "v1.35.4"},
				{"/bin/x", "two words"}, {"systemctl", "enable", "--now", "kubelet"},
				{"curl", "-f", "http://x"}, {"sleep", "1"},
				{"one"}, {"two", "3"},
				{"inner", "command"},
				{"hostname"},
			}},
		},
		"AServiceRunsTheStepsBesideItsScript": {
			in: "#cloud-config\nruncmd: [[systemctl, enable, --now, b]]\nwrite_files:\n" +
				"- {path: /etc/systemd/system/b.service, content: \"[Service]\\nEnvironmentFile=/env\\nExecStart=/opt/b\\n\"}\n" +
				"- {path: /env, content: A=1}\n- {path: /opt/b, content: '#!/bin/sh'}\n" +
				"- {path: /opt/steps/1-b, content: second}\n- {path: /opt/steps/0-a, content: first one}\n",
			want: Instance{
				Files: map[string]string{
					"/etc/systemd/system/b.service": "[Service]\nEnvironmentFile=/env\nExecStart=/opt/b\n",
					"/env":                          "A=1", "/opt/b": "#!/bin/sh", "/opt/steps/0-a": "first one", "/opt/steps/1-b": "second",
				},
				Commands:    [][]string{{"systemctl", "enable", "--now", "b"}, {"/opt/steps/0-a"}, {"first", "one"}, {"/opt/steps/1-b"}, {"second"}},
				Environment: map[string]string{"A": "1"},
			},
		},
		"IgnitionWritesFilesAndStartsUnits": {
			in: `{"ignition": {"version": "3.3.0"}, "storage": {"files": [
				{"path": "/etc/hostname", "contents": {"source": "data:,w1%0A"}},
				{"path": "/b64", "contents": {"source": "data:;base64,aGVsbG8="}},
				{"path": "/gz", "contents": {"compression": "gzip", "source": "data:;base64,` + zipped + `"}}]},
				"systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Service]"}, {"name": "b.service", "dropins": [{"name": "c.conf", "contents": "c"}]}]}}`,
			want: Instance{
				Hostname: "w1", Commands: [][]string{{"systemctl", "start", "a.service"}},
				Files: map[string]string{"/etc/hostname": "w1\n", "/b64": "hello", "/gz": "zipped",
					"/etc/systemd/system/a.service": "[Service]", "/etc/systemd/system/b.service.d/c.conf": "c"},
			},
		},
		"UnknownKeysAreLeftAlone": {
			in:   "#cloud-config\npackages: [jq]\nusers: []\n",
			want: Instance{Files: map[string]string{}},
		},
		"TheWholeMayBeGzip": {
			in:   gz("#cloud-config\nhostname: z\n"),
			want: Instance{Hostname: "z", Files: map[string]string{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, *got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"NoUserData":       {"", "there is no user data"},
		"NoHeader":         {"hostname: secret", "user data: its first line must be #cloud-config"},
		"AnotherHeader":    {"#!/bin/sh\n", "user data: its first line must be #cloud-config"},
		"ATemplate":        {"## template: jinja\n#cloud-config\nhostname: '{{ ds.meta_data.local_hostname }}'", "user data: a simulated VM renders no template: it must have neither {{ nor {%"},
		"BrokenGzip":       {"\x1f\x8bxx", "user data: is not gzip: unexpected EOF"},
		"RelativePath":     {"#cloud-config\nwrite_files: [{path: a}]", `write_files[0].path: invalid value "a": must be an absolute path`},
		"UnknownEncoding":  {"#cloud-config\nwrite_files: [{path: /a, encoding: rot13}]", `write_files[0] /a: encoding: invalid value "rot13": must be one of b64, gzip, gzip+b64 and text/plain`},
		"BrokenBase64":     {"#cloud-config\nwrite_files: [{path: /a, encoding: b64, content: '!'}]", "write_files[0] /a: content: is not base64: illegal base64 data at input byte 0"},
		"BrokenFileGzip":   {"#cloud-config\nwrite_files: [{path: /a, encoding: gz+b64, content: aGVsbG8gd29ybGQ=}]", "write_files[0] /a: content: is not gzip: gzip: invalid header"},
		"BrokenShell":      {"#cloud-config\nruncmd: ['echo \"']", "runcmd[0]: is not a shell command: 1:6: reached EOF without closing quote \""},
		"IgnitionOfSpec2":  {`{"ignition": {"version": "2.3.0"}}`, `user data: ignition.version: invalid value "2.3.0": must be 3.x`},
		"IgnitionDownload": {`{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "/a", "contents": {"source": "https://x"}}]}}`, "storage.files[0] /a: contents.source: must be a data: URL"},
		"NumberAsCommand":  {"#cloud-config\nruncmd: [5]", "runcmd[0]: invalid value 5: must be a string or a list of strings"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.in))
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
}

func TestParseRefusesAGzipBomb(t *testing.T) {
	_, err := Parse([]byte(gz("#cloud-config\n" + strings.Repeat("#", maxExpanded))))
	if want := "user data: gzip: expands to more than 16 MiB"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func TestATemplateWithoutExpressionsIsReadAsItIs(t *testing.T) {
	in, err := Parse([]byte("## template: jinja\n#cloud-config\nhostname: vm\n"))
	if err != nil || in.Hostname != "vm" {
		t.Errorf("%+v, %v", in, err)
	}
}
