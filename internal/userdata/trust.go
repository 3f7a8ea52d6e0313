package userdata

import (
	"bytes"
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Scripts that have the system read its certificates once: before the steps of the profile, which may need
// them, or after, on systems whose packages install the command.
var (
	//go:embed scripts/trust.sh
	trustScript string
	//go:embed scripts/trust-packages.sh
	trustPackages string
)

// applyTrust writes each certificate of the bundle to a file of its own: not all systems
// read files with several.
func (d *draft) applyTrust(in Input, at *field.Path) field.ErrorList {
	at = at.Child("caBundle")
	if in.Settings.CABundle == "" {
		return nil
	}
	if in.Profile == nil {
		return needsProfile(at, "without one Drover does not know where the system has its certificates")
	}
	trust := in.Profile.Spec.Trust
	if trust == nil {
		return field.ErrorList{field.Forbidden(at, "the profile does not state in profile.spec.trust where the system has its certificates")}
	}
	certificates, err := splitCertificates(in.Settings.CABundle, at)
	if err != nil {
		return field.ErrorList{err}
	}
	extension := trust.Extension
	if extension == "" {
		extension = machinev1alpha1.DefaultTrustExtension
	}
	var errs field.ErrorList
	for i, c := range certificates {
		f := File{Path: path.Join(trust.Directory, fmt.Sprintf("drover-%d.%s", i, extension)), Content: c}
		if err := d.addFile(f, at); err != nil {
			errs = append(errs, err)
		}
	}
	d.Environment["TRUST_COMMAND"] = trust.Command
	d.prepare = append(d.prepare, Step{Name: "trust", Script: trustScript})
	d.prepared = append(d.prepared, Step{Name: "trust-packages", Script: trustPackages})
	return errs
}

// splitCertificates returns the certificates of a bundle, without the text between them.
func splitCertificates(bundle string, at *field.Path) ([]string, *field.Error) {
	if err := checkSecret(bundle, at); err != nil {
		return nil, err
	}
	const must = "must be certificates as PEM"
	invalid := func(format string, args ...any) *field.Error {
		return field.Invalid(at, field.OmitValueType{}, must+": "+fmt.Sprintf(format, args...))
	}
	var out []string
	rest := []byte(bundle)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, invalid("block %d is a %q", len(out)+1, block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, invalid("block %d: %v", len(out)+1, err)
		}
		out = append(out, string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})))
	}
	switch {
	case len(out) == 0:
		return nil, invalid("there is none")
	case bytes.Contains(rest, []byte("-----BEGIN")):
		return nil, invalid("block %d is cut off", len(out)+1)
	}
	return out, nil
}
