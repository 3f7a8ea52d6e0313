package release

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"

	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// spdxMediaType is the media type of an SPDX document in JSON.
const spdxMediaType = "application/spdx+json"

const noAssertion = "NOASSERTION"

// An image is a package for one architecture.
type image struct {
	platform v1.Platform
	digest   v1.Hash
	modules  []licensed
}

// sbom returns the software bill of materials of a package: its index, the image of each
// architecture, and the Go modules that are linked into its program.
func sbom(name string, r xpkg.Release, index v1.Hash, images []image, created string) ([]byte, error) {
	root := &spdx.Package{
		PackageName: name, PackageVersion: r.Version, PackageSPDXIdentifier: "package",
		PackageDownloadLocation: r.Registry + "/" + name + "@" + index.String(),
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
		PackageChecksums:          checksum(index),
		PackageSupplier:           &common.Supplier{Supplier: "The Drover Authors", SupplierType: "Organization"},
		PackageExternalReferences: purl(fmt.Sprintf("pkg:oci/%s@%s?repository_url=%s&tag=%s", name, url.QueryEscape(index.String()), url.QueryEscape(r.Registry+"/"+name), r.Version)),
		PrimaryPackagePurpose:     "CONTAINER",
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      name + "-" + r.Version,
		DocumentNamespace: fmt.Sprintf("https://%s/%s/%s/%s", r.Registry, name, r.Version, index.Hex),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "The Drover Authors"}, {CreatorType: "Tool", Creator: "drover-release"}},
			Created:  created,
		},
		Packages: []*spdx.Package{root},
	}
	relate := func(a common.ElementID, relationship string, b common.ElementID) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: relationship,
		})
	}
	relate("DOCUMENT", common.TypeRelationshipDescribe, root.PackageSPDXIdentifier)
	known := map[common.ElementID]bool{}
	for _, i := range images {
		id := elementID("image-" + i.platform.OS + "-" + i.platform.Architecture)
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName: name + "-" + i.platform.OS + "-" + i.platform.Architecture, PackageVersion: r.Version, PackageSPDXIdentifier: id,
			PackageDownloadLocation: r.Registry + "/" + name + "@" + i.digest.String(),
			PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: noAssertion,
			PackageChecksums:          checksum(i.digest),
			PackageExternalReferences: purl(fmt.Sprintf("pkg:oci/%s@%s?arch=%s&repository_url=%s", name, url.QueryEscape(i.digest.String()), i.platform.Architecture, url.QueryEscape(r.Registry+"/"+name))),
			PrimaryPackagePurpose:     "CONTAINER",
		})
		relate(id, common.TypeRelationshipVariantOf, root.PackageSPDXIdentifier)
		for _, m := range i.modules {
			p := modulePackage(m)
			if !known[p.PackageSPDXIdentifier] {
				known[p.PackageSPDXIdentifier] = true
				doc.Packages = append(doc.Packages, p)
			}
			relate(id, common.TypeRelationshipContains, p.PackageSPDXIdentifier)
		}
	}
	var b bytes.Buffer
	err := spdxjson.Write(doc, &b, spdxjson.Indent("  "))
	return b.Bytes(), err
}

func modulePackage(m licensed) *spdx.Package {
	p := &spdx.Package{
		PackageName: m.Path, PackageVersion: m.Version, PackageSPDXIdentifier: elementID("module-" + m.String()),
		PackageDownloadLocation: noAssertion, PackageCopyrightText: noAssertion,
		PackageLicenseConcluded: m.expression(), PackageLicenseDeclared: m.expression(),
		PackageExternalReferences: purl("pkg:golang/" + m.Path + "@" + m.Version),
		PrimaryPackagePurpose:     "LIBRARY",
	}
	if m.URL == "" {
		// Scanners expect Go's own packages under this name.
		p.PackageName, p.PackageExternalReferences = "stdlib", purl("pkg:golang/stdlib@"+m.Version)
		return p
	}
	p.PackageDownloadLocation = m.URL
	p.PackageSourceInfo = "go.sum " + m.Sum
	return p
}

func checksum(h v1.Hash) []common.Checksum {
	return []common.Checksum{{Algorithm: common.SHA256, Value: h.Hex}}
}

func purl(locator string) []*spdx.PackageExternalReference {
	return []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator,
	}}
}

var notInID = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// elementID converts a name to an identifier of SPDX, which has letters, digits, dots and dashes.
func elementID(name string) common.ElementID {
	return common.ElementID(strings.Trim(notInID.ReplaceAllString(name, "-"), "-"))
}
