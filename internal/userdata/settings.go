package userdata

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// applySettings adds the settings of the class besides its profile. A setting that cannot be applied is an
// error: if it were ignored, that would be noticed only when a pod needs it.
func (d *draft) applySettings(in Input) field.ErrorList {
	at := field.NewPath("class", "spec", "operatingSystem")
	var errs field.ErrorList
	for _, apply := range []func(Input, *field.Path) field.ErrorList{
		d.applyTrust, d.applyTime, d.applyKubeletDigests, d.applyContainerdDownload, d.applyRegistryMirrors,
		d.applyCredentialProviders, d.applySandboxImage, d.applyProxy, d.applySSH, d.applyExtras,
	} {
		errs = append(errs, apply(in, at)...)
	}
	if len(errs) > 0 {
		return errs
	}
	d.addDownloads()
	return nil
}

// needsProfile is the error of a setting that only a VM with a profile can have.
func needsProfile(at *field.Path, why string) field.ErrorList {
	return field.ErrorList{field.Forbidden(at, "needs class.spec.operatingSystem.profile: "+why)}
}

// checkURL checks a URL of a class. Messages leave out a URL that may have a password.
func checkURL(text string, at *field.Path) *field.Error {
	if strings.Contains(text, "@") {
		return field.Invalid(at, field.OmitValueType{}, "must have no user and no password: a class has no secrets, and each user of the VM can read its user data")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsFunc(text, isUnsafeInURL) {
		return field.Invalid(at, text, "must be a URL like https://mirror.example.org")
	}
	return checkContent(text, at)
}

// isUnsafeInURL are characters that end a URL, or mean something else, in the files of a VM.
func isUnsafeInURL(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("'\"\\`", r)
}

// checkSecret refuses private keys in verbatim contents of a class.
func checkSecret(content string, at *field.Path) *field.Error {
	if strings.Contains(content, "PRIVATE KEY-----") {
		return field.Invalid(at, field.OmitValueType{}, "must have no private key: a class has no secrets, and each user of the VM can read its user data")
	}
	return nil
}

// quote a value for TOML. Values have no control characters.
func quote(s string) string { return fmt.Sprintf("%q", s) }
