package userdata

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	pathDownloads         = "/etc/drover/downloads"
	pathContainerdArchive = "/var/lib/drover/containerd.tar.gz"
)

// A download is an executable or an archive whose digest the class has.
type download struct {
	architecture machinev1alpha1.Architecture
	sha256       string
	url, path    string
}

var (
	// downloadScript installs the downloads for the VM's architecture in the file pathDownloads.
	//
	//go:embed scripts/download.sh
	downloadScript string
	//go:embed scripts/unpack-containerd.sh
	unpackContainerd string
)

// addDownloads adds the downloads as a list that a step reads.
func (d *draft) addDownloads() {
	if len(d.downloads) == 0 {
		return
	}
	b := strings.Builder{}
	for _, l := range d.downloads {
		fmt.Fprintf(&b, "%s %s %s %s\n", l.architecture, l.sha256, l.url, l.path)
	}
	d.Files = append(d.Files, File{Path: pathDownloads, Content: b.String()})
	d.download = []Step{{Name: "download", Script: downloadScript}}
}

// applyKubeletDigests has the kubelet verified by its digest, and not by the checksum beside it.
func (d *draft) applyKubeletDigests(in Input, at *field.Path) field.ErrorList {
	if len(in.Settings.KubeletDigests) == 0 {
		return nil
	}
	base := strings.TrimRight(in.DownloadURL, "/")
	if err := checkURL(base, at.Child("kubeletDownloadURL")); err != nil {
		return field.ErrorList{err}
	}
	found, errs := digestsOf(in.Settings.KubeletDigests, in.Version, in.Architecture, at.Child("kubeletDigests"))
	for _, f := range found {
		d.downloads = append(d.downloads, download{
			architecture: f.Architecture, sha256: f.SHA256, path: d.Environment["KUBELET_PATH"],
			url: fmt.Sprintf("%s/%s/bin/linux/%s/kubelet", base, in.Version, f.Architecture),
		})
	}
	return errs
}

// applyContainerdDownload changes the source of a profile's containerd, and its verification. Both may be set
// for profiles that download only some of their releases.
func (d *draft) applyContainerdDownload(in Input, at *field.Path) field.ErrorList {
	s := in.Settings
	var errs field.ErrorList
	isDownload := func(r machinev1alpha1.ContainerdRelease) bool { return r.Download != nil }
	if in.Profile == nil || !slices.ContainsFunc(in.Profile.Spec.Containerd, isDownload) {
		const why = "needs a profile that downloads containerd, which is one with a download in profile.spec.containerd"
		if s.ContainerdDownloadURL != "" {
			errs = append(errs, field.Forbidden(at.Child("containerdDownloadURL"), why))
		}
		if len(s.ContainerdDigests) > 0 {
			errs = append(errs, field.Forbidden(at.Child("containerdDigests"), why))
		}
		return errs
	}
	if s.ContainerdDownloadURL != "" {
		if err := checkURL(s.ContainerdDownloadURL, at.Child("containerdDownloadURL")); err != nil {
			return field.ErrorList{err}
		}
		if d.containerd != nil {
			d.Environment["CONTAINERD_URL"] = strings.TrimRight(s.ContainerdDownloadURL, "/")
		}
	}
	if len(s.ContainerdDigests) == 0 || d.containerd == nil {
		return nil
	}
	version, base := d.containerd.Version, d.Environment["CONTAINERD_URL"]
	if err := checkURL(base, field.NewPath("profile", "spec", "containerd")); err != nil {
		return field.ErrorList{err}
	}
	found, errs := digestsOf(s.ContainerdDigests, version, in.Architecture, at.Child("containerdDigests"))
	for _, f := range found {
		d.downloads = append(d.downloads, download{
			architecture: f.Architecture, sha256: f.SHA256, path: pathContainerdArchive,
			url: fmt.Sprintf("%s/v%s/containerd-%s-linux-%s.tar.gz", base, version, version, f.Architecture),
		})
	}
	delete(d.Environment, "CONTAINERD_URL")
	d.Environment["CONTAINERD_ARCHIVE"] = pathContainerdArchive
	return errs
}

// digestsOf returns the digests of a version, of which there must be at least one, and one for the VM's
// architecture if that is known.
func digestsOf(all []machinev1alpha1.Digest, version, architecture string, at *field.Path) ([]machinev1alpha1.Digest, field.ErrorList) {
	var errs field.ErrorList
	var found []machinev1alpha1.Digest
	var versions, architectures []string
	for i, d := range all {
		errs = append(errs, checkDigest(d.SHA256, d.Architecture, at.Index(i))...)
		if versions = append(versions, d.Version); d.Version == version {
			found, architectures = append(found, d), append(architectures, string(d.Architecture))
		}
	}
	slices.Sort(versions)
	switch {
	case len(errs) > 0:
	case len(found) == 0:
		errs = append(errs, field.Required(at, fmt.Sprintf("there is no digest of version %s, but of %s", version, strings.Join(slices.Compact(versions), ", "))))
	case architecture != "" && !slices.Contains(architectures, architecture):
		errs = append(errs, field.Required(at, fmt.Sprintf("there is no digest of version %s for %s, the architecture of class.spec.nodeCapacity, but for %s",
			version, architecture, strings.Join(architectures, ", "))))
	}
	return found, errs
}

// architectures that there are downloads for.
var architectures = []machinev1alpha1.Architecture{"amd64", "arm64", "ppc64le", "s390x"}

var sha256Sum = regexp.MustCompile(`^[0-9a-f]{64}$`)

func checkDigest(sum string, architecture machinev1alpha1.Architecture, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !slices.Contains(architectures, architecture) {
		errs = append(errs, field.NotSupported(at.Child("architecture"), architecture, architectures))
	}
	if !sha256Sum.MatchString(sum) {
		errs = append(errs, field.Invalid(at.Child("sha256"), sum, "must be 64 hexadecimal digits in lower case"))
	}
	return errs
}

// addProviderDownloads adds the downloads of image credential providers to their folder.
func (d *draft) addProviderDownloads(p machinev1alpha1.ImageCredentialProviders, names []string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, l := range p.Downloads {
		at := at.Index(i)
		if !slices.Contains(names, l.Name) {
			errs = append(errs, field.NotSupported(at.Child("name"), l.Name, names))
			continue
		}
		file := path.Join(binDirOf(p), l.Name)
		if err := checkPath(file, at.Child("name")); err != nil {
			errs = append(errs, err)
		}
		if file == d.Environment["KUBELET_PATH"] {
			errs = append(errs, field.Forbidden(at.Child("name"), file+" is the kubelet"))
		}
		if err := checkURL(l.URL, at.Child("url")); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, checkDigest(l.SHA256, l.Architecture, at)...)
		d.downloads = append(d.downloads, download{architecture: l.Architecture, sha256: l.SHA256, url: l.URL, path: file})
	}
	return errs
}
