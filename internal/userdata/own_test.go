package userdata

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// own values: each is another one, so that none is taken for another.
var own = Filling{
	Token: "abcdef.0123456789abcdef", Server: "https://10.0.0.1:6443", Name: "workers-x7k2p",
	CA: []byte{0xff, 0xef, 0xbe}, UID: "6f8e9d10", ConfigUID: "0c1d2e3f",
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestFillOwn(t *testing.T) {
	const token, name = "abcdef.0123456789abcdef", "workers-x7k2p"
	cases := map[string]struct {
		reason, content, want string
		hasToken              bool
	}{
		"PlaceholdersOfMachineControllerManager": {
			"Secrets of Gardener work as they are.",
			"--token=<<BOOTSTRAP_TOKEN>> --name=<<MACHINE_NAME>>", "--token=" + token + " --name=" + name, true,
		},
		"PlaceholderOfKubermatic": {
			"Kubermatic's machine-controller has no other.",
			"hostname: <MACHINE_NAME>", "hostname: " + name, false,
		},
		"PlaceholdersOfDrover": {
			"A Node proves by the UIDs whose it is.",
			"$(token) $(server) $(ca.crt|base64) $(joinToken.uid) $(config.uid)", token + " https://10.0.0.1:6443 /+++ 6f8e9d10 0c1d2e3f", true,
		},
		"AHereDocumentStays": {
			"A script writes the file all the same.",
			"cat <<MACHINE_NAME>file\na\nMACHINE_NAME", "cat <<MACHINE_NAME>file\na\nMACHINE_NAME", false,
		},
		"ThreeBracketsAreAPlaceholderInBrackets": {
			"The placeholder with two brackets is found first.",
			"<<<MACHINE_NAME>>>", "<" + name + ">", false,
		},
		"EscapedAsInAQuery": {
			"machine-controller-manager escapes data URLs of Ignition so.",
			"data:,%3C%3CBOOTSTRAP_TOKEN%3E%3E%20%3C%3CMACHINE_NAME%3E%3E%20%3CMACHINE_NAME%3E", "data:," + token + "%20" + name + "%20" + name, true,
		},
		"EscapedWithSmallLetters": {
			"Not all encoders write capitals.",
			"data:,%3c%3cBOOTSTRAP_TOKEN%3e%3e%0a", "data:," + token + "%0a", true,
		},
		"ValuesAreEscapedAsTheirPlaceholders": {
			"A data URL must not be cut at a special character.",
			"data:,%24%28server%29%20%24(server)%20%24(ca.crt%7Cbase64)", "data:,https%3A%2F%2F10.0.0.1%3A6443%20https://10.0.0.1:6443%20/+++", false,
		},
		"EscapedAsInJSON": {
			"Encoders of JSON that mind HTML write brackets so.",
			`{"contents":"\u003c\u003cBOOTSTRAP_TOKEN\u003e\u003e"}`, `{"contents":"` + token + `"}`, true,
		},
		"InBase64": {
			"Files are encoded so that no quoting breaks them.",
			"content: " + b64("token: <<BOOTSTRAP_TOKEN>>\n") + "\n  owner: root", "content: " + b64("token: "+token+"\n") + "\n  owner: root", true,
		},
		"InBase64WithoutPadding": {
			"Some decoders refuse padding that they do not expect.",
			"x " + strings.TrimRight(b64("a <<MACHINE_NAME>>"), "=") + "\n", "x " + strings.TrimRight(b64("a "+name), "=") + "\n", false,
		},
		"InABase64DataURL": {
			"Ignition's files are data URLs.",
			`{"source":"data:text/plain;charset=utf-8;base64,` + b64("~~~???>>><<MACHINE_NAME>> $(token)") + `"}`,
			`{"source":"data:text/plain;charset=utf-8;base64,` + b64("~~~???>>>"+name+" "+token) + `"}`, true,
		},
		"InAnEscapedBase64DataURL": {
			"A URL may have its special characters escaped.",
			"base64," + url.QueryEscape(b64("~~~???>>> $(token)?")) + ";", "base64," + b64("~~~???>>> "+token+"?") + ";", true,
		},
		"EscapedInBase64": {
			"An encoder may wrap another one.",
			b64("%3C%3CMACHINE_NAME%3E%3E"), b64(name), false,
		},
		"InWrappedBase64": {
			"The tool base64 wraps lines, and a block of YAML indents them.",
			"  content: |\n    " + strings.Join(wrapped(strings.Repeat("x", 100)+"<<BOOTSTRAP_TOKEN>>"+strings.Repeat("y", 100)), "\n    ") + "\n  path: /a\n",
			"  content: |\n    " + strings.Join(wrapped(strings.Repeat("x", 100)+token+strings.Repeat("y", 100)), "\n    ") + "\n  path: /a\n", true,
		},
		"InWrappedBase64BeforeAWord": {
			"The last line is full, and the word after it looks as if it belonged to it.",
			"content: |\n  " + strings.Join(wrapped(strings.Repeat("x", 99)+"$(token)"+strings.Repeat("y", 7)), "\n  ") + "\nowner: root\n",
			"content: |\n  " + strings.Join(wrapped(strings.Repeat("x", 99)+token+strings.Repeat("y", 7)), "\n  ") + "\nowner: root\n", true,
		},
		"InWrappedBase64OfABinary": {
			"What is no text may be in a file as well.",
			"a: |\n  " + strings.Join(wrapped(strings.Repeat("0", 34)+"\n<<BOOTSTRAP_TOKEN>>\n00\xe0"), "\n  ") + "\n",
			"a: |\n  " + strings.Join(wrapped(strings.Repeat("0", 34)+"\n"+token+"\n00\xe0"), "\n  ") + "\n", true,
		},
		"InBase64BeforeWords": {
			"Words are no more base64 than keys are.",
			"base64 -d <<END >a\n" + b64("token: <<BOOTSTRAP_TOKEN>>; ") + "\nDONE\npath: /a\n", "base64 -d <<END >a\n" + b64("token: "+token+"; ") + "\nDONE\npath: /a\n", true,
		},
		"InBase64BeforeAKeyOfFourLetters": {
			"With the key it could be decoded as well.",
			"content: " + b64("a: $(token)\n") + "\npath: /a\n", "content: " + b64("a: "+token+"\n") + "\npath: /a\n", true,
		},
		"OtherTextStays": {
			"Drover does not know what else is in it.",
			"a <b> $(hostname) %3Cc%3E " + b64("nothing to fill") + " <BOOTSTRAP_TOKEN>\r\n", "a <b> $(hostname) %3Cc%3E " + b64("nothing to fill") + " <BOOTSTRAP_TOKEN>\r\n", false,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got, err := own.FillOwn(tc.content, Form{})
			if err != nil || string(got) != tc.want {
				t.Errorf("%s\nwant %q\ngot  %q, %v", tc.reason, tc.want, got, err)
			}
			if has, _ := InspectOwn(tc.content, Form{}); has != tc.hasToken {
				t.Errorf("%s\nthe token has a placeholder: %v, want %v", tc.reason, has, tc.hasToken)
			}
		})
	}
}

// wrapped base64 as the tool base64 writes it.
func wrapped(s string) []string {
	var out []string
	for e := b64(s); e != ""; {
		n := min(76, len(e))
		out, e = append(out, e[:n]), e[n:]
	}
	return out
}

func TestFillOwnEncodesTheWhole(t *testing.T) {
	got, err := own.FillOwn("<<MACHINE_NAME>>", Form{Encoding: clusterv1alpha1.UserDataBase64})
	if err != nil || string(got) != b64("workers-x7k2p") {
		t.Errorf("%q, %v", got, err)
	}
	var tooLarge *TooLargeError
	if _, err := own.FillOwn("<<MACHINE_NAME>>", Form{MaxBytes: 12}); !errors.As(err, &tooLarge) || tooLarge.Bytes != 13 {
		t.Errorf("error %v", err)
	}
	if _, err := InspectOwn(strings.Repeat("x", 13), Form{MaxBytes: 12}); !errors.As(err, &tooLarge) {
		t.Errorf("error %v", err)
	}
}

// TestFillOwnTakesLinearTime on text of which each line may be base64: a Secret has 1 MiB.
func TestFillOwnTakesLinearTime(t *testing.T) {
	for name, line := range map[string]string{"Decodable": strings.Repeat("QUJD", 19), "OddLength": strings.Repeat("Q", 77)} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(line+"\n", (1<<20)/len(line))
			began := time.Now()
			got, err := own.FillOwn(text, Form{})
			if err != nil || string(got) != text {
				t.Errorf("it changed: %v", err)
			}
			if took := time.Since(began); took > patience.Scale(10*time.Second) {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestCheckOwn(t *testing.T) {
	cases := map[string]struct {
		reason, content, declared string
		wanted                    machinev1alpha1.ProvisioningFormat
		want                      string
	}{
		"CloudConfig":       {"It is the usual form.", "#cloud-config\n", "", "", ""},
		"Script":            {"cloud-init runs it.", "#!/bin/bash\n", "cloud-config", "", ""},
		"Multipart":         {"Headers have no case.", "content-type: multipart/mixed; boundary=a\n", "", machinev1alpha1.CloudInit, ""},
		"Ignition":          {"It is found out.", ` {"ignition":{"version":"3.3.0"}}`, "", "", ""},
		"DeclaredIgnition":  {"Cluster API declares it.", `{"ignition":{"version":"2.3.0"}}`, "ignition", machinev1alpha1.Ignition, ""},
		"UnknownFormat":     {"Nothing is known of it.", "a", "powershell", "", `key "format": invalid value "powershell": must be cloud-config or ignition`},
		"OtherThanTheClass": {"The image reads another one.", "{}", "ignition", machinev1alpha1.CloudInit, `key "format": invalid value "ignition": spec.operatingSystem.provisioning of the class is CloudInit`},
		"Empty":             {"Nothing would join.", "", "", "", "is empty"},
		"Gzip":              {"It hides placeholders.", "\x1f\x8b\x08\x00", "", "", "is not text: "},
		"Binary":            {"cloud-init reads no NUL.", "#cloud-config\n\x00", "", "", "is not text: "},
		"Twice":             {"The content of a Secret was encoded before it became data.", "I2Nsb3VkLWNvbmZpZwpob3N0bmFtZTogYQo=", "", "", "is base64 of user data: must be the user data itself"},
		"Toml":              {"Neither agent reads it.", "[settings]\ntoken = 'secret'", "", "", "is neither Ignition nor user data of cloud-init: "},
		"NotJSON":           {"An error must not quote it.", "{secret", "", "", "is not an Ignition configuration: must be a JSON object"},
		"NoVersion":         {"Ignition refuses it.", "{}", "", "", "is not an Ignition configuration: ignition.version: required value"},
		"IgnitionAsCloud":   {"cloud-init does not read it.", `{"ignition":{"version":"3.3.0"}}`, "cloud-config", "", "is neither Ignition nor user data of cloud-init: "},
		"CloudAsIgnition":   {"Ignition does not read it.", "#cloud-config\n", "", machinev1alpha1.Ignition, "is not an Ignition configuration: must be a JSON object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckOwn([]byte(tc.content), tc.declared, tc.wanted)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (got == "") != (tc.want == "") || !strings.HasPrefix(got, tc.want) || strings.Contains(got, "secret") {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// FuzzFillOwn puts a placeholder between any two texts in each form that is known, and reads the
// value back: nothing else may change.
func FuzzFillOwn(f *testing.F) {
	f.Add("#cloud-config\nwrite_files:\n- content: ", "\n  path: /a\n")
	f.Add("QUJD", "QUJD\nQUJD")
	f.Add("<", ">")
	f.Add("$(", "%3C%3cMACHINE_NAME\\u003c")
	f.Fuzz(func(t *testing.T, before, after string) {
		if !utf8.ValidString(before) || !utf8.ValidString(after) {
			t.Skip("a word after it cannot be reported from the end of a binary")
		}
		// Around it is what ends every other word.
		inner := before + "\n<<BOOTSTRAP_TOKEN>>\n" + after
		whole, _, _ := newReplacer(own.ownValues()).replace(inner)
		if has, _ := InspectOwn(inner, Form{}); !has {
			t.Errorf("%q has no token", inner)
		}
		encoded := b64(inner)
		got, err := own.FillOwn("- "+encoded+" -", Form{})
		if err != nil || string(got) != "- "+b64(whole)+" -" {
			t.Errorf("%q in base64 becomes %q, %v", inner, got, err)
		}
		lines := strings.Join(wrapped(inner), "\n    ")
		doc := "a: |\n    " + lines + "\nb: c\n"
		if got, err = own.FillOwn(doc, Form{}); err != nil {
			t.Fatal(err)
		}
		read := map[string]string{}
		if err := yaml.Unmarshal(got, &read); err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		decoded, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(read["a"], "\n", ""))
		if err != nil || string(decoded) != whole || read["b"] != "c" {
			t.Errorf("%q wrapped becomes %q, %v", inner, decoded, err)
		}
	})
}
