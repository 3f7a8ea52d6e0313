package userdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

// cloudInitHeaders are the beginnings of user data that cloud-init accepts.
var cloudInitHeaders = []string{
	"#cloud-config", "#!", "#include", "#cloud-boothook", "#part-handler", "## template: jinja",
	"Content-Type: multipart/", "MIME-Version:", "From nobody ",
}

// CheckOwn returns the error in user data that Drover did not write. The declared format is that of its Secret,
// and wanted that of the class; either may be empty. An error never quotes the content.
func CheckOwn(content []byte, declared string, wanted machinev1alpha1.ProvisioningFormat) error {
	formats := map[string]machinev1alpha1.ProvisioningFormat{
		"":                                      wanted,
		machinev1alpha1.UserDataFormatCloudInit: machinev1alpha1.CloudInit,
		machinev1alpha1.UserDataFormatIgnition:  machinev1alpha1.Ignition,
	}
	format, known := formats[declared]
	switch {
	case !known:
		return fmt.Errorf("key %q: invalid value %q: must be %s or %s", machinev1alpha1.UserDataKeyFormat, text.Shorten(declared, maxShown), machinev1alpha1.UserDataFormatCloudInit, machinev1alpha1.UserDataFormatIgnition)
	case wanted != "" && format != wanted:
		return fmt.Errorf("key %q: invalid value %q: spec.operatingSystem.provisioning of the class is %s", machinev1alpha1.UserDataKeyFormat, declared, wanted)
	}
	if err := checkText(content); err != nil {
		return err
	}
	isIgnition := strings.HasPrefix(strings.TrimSpace(string(content)), "{")
	switch {
	case format == machinev1alpha1.Ignition, format == "" && isIgnition:
		return checkIgnition(content)
	case !isCloudInit(string(content)) && isEncoded(content):
		return errors.New("is base64 of user data: must be the user data itself, which a Secret has in stringData, or encoded once in data")
	case !isCloudInit(string(content)):
		return fmt.Errorf("is neither Ignition nor user data of cloud-init: must be a JSON object, or begin with one of %s", strings.Join(cloudInitHeaders, ", "))
	}
	return nil
}

// CheckMade is CheckOwn for user data that a bootstrap provider made. Without a declared and a wanted format it may be any
// text, such as a machine configuration of Talos.
func CheckMade(content []byte, declared string, wanted machinev1alpha1.ProvisioningFormat) error {
	if declared == "" && wanted == "" {
		return checkText(content)
	}
	return CheckOwn(content, declared, wanted)
}

// checkText returns an error if user data is empty or no text.
func checkText(content []byte) error {
	switch {
	case len(content) == 0:
		return errors.New("is empty")
	case !utf8.Valid(content) || strings.IndexByte(string(content), 0) >= 0:
		return errors.New("is not text: Drover finds no placeholders in compressed user data, and compresses it itself where the cloud takes that")
	}
	return nil
}

// maxShown is how much of an invalid value is shown.
const maxShown = 32

func isCloudInit(content string) bool {
	for _, h := range cloudInitHeaders {
		if len(content) >= len(h) && strings.EqualFold(content[:len(h)], h) {
			return true
		}
	}
	return false
}

// isEncoded reports whether the content is base64 of user data.
func isEncoded(content []byte) bool {
	inner := string(text.Decoded(content))
	return isCloudInit(inner) || strings.HasPrefix(strings.TrimSpace(inner), "{")
}

func checkIgnition(content []byte) error {
	c := struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}{}
	if json.Unmarshal(content, &c) != nil { // The error of the parser quotes the content.
		return errors.New("is not an Ignition configuration: must be a JSON object")
	}
	if c.Ignition.Version == "" {
		return errors.New("is not an Ignition configuration: ignition.version: required value")
	}
	return nil
}

// InspectOwn fills user data that Drover did not write with values of the usual size. It reports whether there
// is a placeholder for the join token, in a form that FillOwn recognizes, and returns a TooLargeError if the
// cloud does not accept user data of that size.
func InspectOwn(content string, form Form) (hasToken bool, err error) {
	filled, hasToken := newReplacer(typical.ownValues()).replaceAll(content)
	_, err = form.pack([]byte(filled))
	return hasToken, err
}

// FillOwn returns user data that Drover did not write with values in place of placeholders, encoded as a whole.
// It supports the placeholders of Drover, of Gardener's machine-controller-manager and of Kubermatic: plain,
// escaped as in a URL query, in a data URL or in JSON, and each of these in base64, in one line or wrapped. Any
// other text stays as it is. It returns a TooLargeError if the cloud does not accept user data of that size.
func (f Filling) FillOwn(content string, form Form) ([]byte, error) {
	filled, _ := newReplacer(f.ownValues()).replaceAll(content)
	return form.pack([]byte(filled))
}
