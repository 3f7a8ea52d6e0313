package userdata

import (
	_ "embed"
	"strings"
)

//go:embed install-kubelet.sh
var installerScript string

// installer is the script that puts a kubelet of a version in place.
func installer(url string) string {
	return strings.ReplaceAll(installerScript, "@URL@", quote(strings.TrimRight(url, "/")))
}

// quote makes s one word of a shell, whatever is in it.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
