package console

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// numbered lines of a console.
func numbered(n int) string {
	b := strings.Builder{}
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestExcerpt(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"NothingIsNothing":        {"a VM that wrote nothing", "", ""},
		"BlankLinesAreLeftOut":    {"they explain nothing", "a\n\n  \r\n\tb  \n", "a\n b\n"},
		"ALineWithoutEnd":         {"a prompt", "login: ", "login:\n"},
		"ColorsAreRemoved":        {"systemd colors its words", "[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39mcron\x1b[0m.\n", "[  OK  ] Started cron.\n"},
		"CursorsAreRemoved":       {"firmware clears the screen", "\x1b[2J\x1b[01;01H\x1b[=3hBooting\x1b]0;title\x07 now\n", "Booting now\n"},
		"AnEscapeAtTheEnd":        {"a sequence that is cut off", "a\x1b", "a\n"},
		"ACarriageReturnEndsLine": {"progress bars overwrite their line", "10%\r20%\r30%\r\n", "10%\n20%\n30%\n"},
		"DirectionIsRemoved":      {"text that reads otherwise than it is", "user\u202etxt.exe\u2066\u200b\u0000\u0007\n", "usertxt.exe\n"},
		"BytesThatAreNoText":      {"a status must be UTF-8", "a\xff\xfeb\n", "a?b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Excerpt(tc.text); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAnExcerptIsTheEndOfALongConsole(t *testing.T) {
	got := Excerpt(numbered(100))
	if lines := strings.Count(got, "\n"); lines != MaxLines || !strings.HasPrefix(got, "line 60\n") || !strings.HasSuffix(got, "line 99\n") {
		t.Errorf("%d lines: %q", lines, got)
	}
	got = Excerpt(strings.Repeat(strings.Repeat("é", 200)+"\n", 100))
	if len(got) > MaxBytes || len(got) < MaxBytes-maxLine || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
	got = Excerpt("begin\n" + strings.Repeat("x", 2*maxInput))
	if got != "" {
		t.Errorf("the rest of a line that was cut: %q", got)
	}
	if got = Excerpt(strings.Repeat("x", 2*maxLine)); len(got) != maxLine+1 || !strings.HasSuffix(got, "x...\n") {
		t.Errorf("a long line has %d bytes", len(got))
	}
}

// TestWhatExplainsIsKept has the console of a VM that prints its host keys after its errors.
func TestWhatExplainsIsKept(t *testing.T) {
	text := "boot\n" +
		"[   11.2] cloud-init[301]: 2026-11-23 - util.py[WARNING]: Failed loading yaml blob. Invalid format at line 2\n" +
		"other\n" +
		"drover-bootstrap: step disks: failed (exit 7), trying again in 5s\n" + numbered(200)
	want := "[   11.2] cloud-init[301]: 2026-11-23 - util.py[WARNING]: Failed loading yaml blob. Invalid format at line 2\n" +
		"drover-bootstrap: step disks: failed (exit 7), trying again in 5s\n[...]\nline 169\n"
	got := Excerpt(text)
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "line 199\n") {
		t.Errorf("got %q", got)
	}

	often := Excerpt(strings.Repeat("drover-bootstrap: step disks: failed (exit 7), trying again in 5s\n", 50) + numbered(200))
	if n := strings.Count(often, "exit 7"); n != maxKept {
		t.Errorf("%d lines were kept", n)
	}
	if strings.Count(often, "\n") > MaxLines {
		t.Errorf("%d lines", strings.Count(often, "\n"))
	}
	if strings.Contains(Excerpt(numbered(200)), gap) {
		t.Error("a gap without a line before it")
	}
}

func TestSecretsAreMasked(t *testing.T) {
	const given = "s3cr3t-of-the-registry"
	for name, tc := range map[string]struct{ reason, text, want string }{
		"AJoinToken":          {"the user data has it", "join 0123ab.0123456789abcdef now", "join (token) now"},
		"ATokenInQuotes":      {"Ignition shows JSON", `{"token":"0123ab.0123456789abcdef"}`, `{"token":(secret)}`},
		"TokensSideBySide":    {"one separates the next", "0123ab.0123456789abcdef 0123ab.0123456789abcdef", "(token) (token)"},
		"ATokenAfterLetters":  {"a variable's name", "X_0123ab.0123456789abcdef", "X_(token)"},
		"ATokenWithColors":    {"a sequence splits it", "0123ab.01234\x1b[31m56789abcdef", "(token)"},
		"ATokenWithControls":  {"they are not shown", "0123ab.\x00\u200b0123456789abcdef", "(token)"},
		"AVersionIsNoToken":   {"it has other lengths", "kernel 6.1.0-18 of debian.org", "kernel 6.1.0-18 of debian.org"},
		"AGivenSecret":        {"the filled values", "got s3cr3t-of-the-registry.", "got (secret)."},
		"APrivateKey":         {"a file of the user", "x\n-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----\ny", "x\n(private key)\ny"},
		"AKeyWithoutEnd":      {"it is still printed", "x\n[ 1.0] -----BEGIN PRIVATE KEY-----\n[ 1.0] MHcC", "x\n[ 1.0] (private key)"},
		"AKeyWithoutBegin":    {"the console is cut off", "MHcC\nMHcD\n-----END OPENSSH PRIVATE KEY-----\nlogin:", "(private key)\nlogin:"},
		"APublicKey":          {"cloud-init prints it", "-----BEGIN SSH HOST KEY KEYS-----\nssh-ed25519 AAAA\n", "-----BEGIN SSH HOST KEY KEYS-----\nssh-ed25519 AAAA"},
		"CredentialsOfAProxy": {"curl shows its URL", "curl: http://me:pass@proxy.example.org:3128/", "curl: http://(secret)@proxy.example.org:3128/"},
		"AURL":                {"it has no credentials", "curl: https://example.org/a@b", "curl: https://example.org/a@b"},
		"ABearer":             {"curl -v shows its headers", "> Authorization: Bearer abcdefgh.ijklmnop", "> Authorization: Bearer (secret)"},
		"AWebToken":           {"of a service account", "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2ln", "(token)"},
		"APassword":           {"set -x shows it", `+ DB_PASSWORD="two words" --token=abc`, "+ DB_PASSWORD=(secret) --token=(secret)"},
		"AStepIsNoSecret":     {"its name has the word", "drover-bootstrap: step fetch-token: started", "drover-bootstrap: step fetch-token: started"},
		"AForgedStep":         {"what follows is no state", "drover-bootstrap: step fetch-token: abcdefghij", "drover-bootstrap: step fetch-token: (secret)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Excerpt(tc.text, given, "", "x"); got != tc.want+"\n" {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestATokenAtTheCutIsMasked moves a token over the end of a line that is cut.
func TestATokenAtTheCutIsMasked(t *testing.T) {
	for before := maxLine - 40; before < maxLine+10; before++ {
		got := Excerpt(strings.Repeat("x", before) + " 0123ab.0123456789abcdef rest of the line")
		if strings.Contains(got, "0123") {
			t.Fatalf("after %d bytes: %q", before, got[len(got)-40:])
		}
		// Each component that passes a console on makes an excerpt of it.
		got = Excerpt(strings.Repeat("x", before) + " password=abcdefgh and the rest of the line")
		if again := Excerpt(got); again != got || strings.Contains(got, "abc") {
			t.Fatalf("after %d bytes: %q, and again %q", before, got[len(got)-40:], again[len(again)-40:])
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	const secret = "correct horse battery staple"
	for _, s := range []string{
		"", "a\r\nb", "\x1b[31mred\x1b[0m", "0123ab.0123456789abcdef", "-----BEGIN PRIVATE KEY-----\nx", "x\n-----END PRIVATE KEY-----",
		"password: \"x y\"", "drover-bootstrap: step disks: failed (exit 7), trying again in 5s\n" + numbered(60), "Ignition failed: " + secret,
		strings.Repeat("y", 600) + "0123ab.0123456789abcdef", "http://a:b@c/", "Bearer abcdefgh12345678", "\u202e\xff", gap + "\n" + numbered(50),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Excerpt(text, secret)
		if len(got) > MaxBytes || strings.Count(got, "\n") > MaxLines || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
		}
		for _, r := range got {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("it has %U", r)
			}
		}
		if strings.Contains(got, secret) || joinToken.MatchString(got) || privateKey.MatchString(got) {
			t.Fatalf("it has a secret: %q", got)
		}
		if again := Excerpt(got, secret); again != got {
			t.Fatalf("its excerpt differs: %q, %q", got, again)
		}
		steps := []string{"disks"}
		if s := LastStep(got, steps); s != nil && (s.Name != "" && s.Name != "disks" || len(s.Output) > maxOutput || s.ExitCode < 0 || s.ExitCode > 999) {
			t.Fatalf("step %+v", s)
		}
		if s := LastStep(got, nil); s != nil {
			t.Fatalf("of user data without steps: %+v", s)
		}
		for _, s := range []string{Refusal(got), LastLines(got)} {
			if len(s) > maxOutput || strings.ContainsRune(s, '\n') || !utf8.ValidString(s) {
				t.Fatalf("message %q", s)
			}
		}
	})
}
