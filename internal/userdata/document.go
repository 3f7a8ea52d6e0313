package userdata

import (
	"fmt"
	"path"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A Document is the content of user data, independent of its format: files, units, and steps. Contents may have
// placeholders, which survive each encoding.
type Document struct {
	// Hostname of the VM.
	Hostname string
	// AuthorizedKeys may log in as LoginUser, by default the user that the image has for it.
	AuthorizedKeys []string
	LoginUser      string
	// Files that are written before anything runs.
	Files []File
	// Units of systemd.
	Units []Unit
	// Steps run in order, each until it has succeeded once. A reboot does not repeat a step that succeeded.
	Steps []Step
	// Environment of all steps. Values reach scripts only this way.
	Environment map[string]string
}

// A File of a VM. It belongs to root.
type File struct {
	Path    string
	Content string
	// Mode is the permissions, by default 0644.
	Mode int
	// IsBase64 means that Content is base64: a placeholder that is filled with base64.
	IsBase64 bool
}

// A Unit of systemd, in /etc/systemd/system.
type Unit struct {
	Name string
	// Content is empty for a unit of the image that only gets drop-ins or is enabled.
	Content string
	// Enabled units start at the first boot, and at each later one.
	Enabled bool
	// DropIns by file name.
	DropIns []DropIn
}

// A DropIn of a unit.
type DropIn struct {
	Name, Content string
}

// A Step is an executable script.
type Step struct {
	// Name of the step, a DNS label.
	Name   string
	Script string
}

// defaultMode of files.
const defaultMode = 0o644

// mode of a file.
func (f File) mode() int {
	if f.Mode == 0 {
		return defaultMode
	}
	return f.Mode
}

// dirUnits is where the units of a VM's administrator are.
const dirUnits = "/etc/systemd/system"

// files of a unit, for formats that know no units.
func (u Unit) files() []File {
	var out []File
	if u.Content != "" {
		out = append(out, File{Path: path.Join(dirUnits, u.Name), Content: u.Content})
	}
	for _, d := range u.DropIns {
		out = append(out, File{Path: path.Join(dirUnits, u.Name+".d", d.Name), Content: d.Content})
	}
	return out
}

// Encode a document.
func (d Document) Encode(format machinev1alpha1.ProvisioningFormat) ([]byte, error) {
	d, err := d.assembled()
	if err != nil {
		return nil, err
	}
	switch format {
	case machinev1alpha1.CloudInit, "":
		return d.cloudInit()
	case machinev1alpha1.Ignition:
		return d.ignition()
	}
	return nil, fmt.Errorf("no user data has the format %q", format)
}
