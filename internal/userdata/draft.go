package userdata

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A draft is a document whose steps are not in their order yet.
type draft struct {
	Document
	// Steps, in the order in which they run.
	prepare, profile, prepared, download, runtime, beforeJoin, join, afterJoin []Step
	// containerd that is downloaded, nil if none is.
	containerd *machinev1alpha1.ContainerdDownload
	// downloads with digests.
	downloads []download
}

func (d draft) finished() Document {
	d.Steps = slices.Concat(d.prepare, d.profile, d.prepared, d.download, d.runtime, d.beforeJoin, d.join, d.afterJoin)
	return d.Document
}

// addFile adds a file that the document does not have yet. The field is the source of the file.
func (d *draft) addFile(f File, at *field.Path) *field.Error {
	for _, have := range d.allFiles() {
		switch {
		case have == f.Path:
			return taken(f.Path, at)
		case strings.HasPrefix(have, f.Path+"/"), strings.HasPrefix(f.Path, have+"/"):
			return field.Forbidden(at, fmt.Sprintf("%s cannot be a file beside %s", f.Path, have))
		}
	}
	d.Files = append(d.Files, f)
	return nil
}

func taken(file string, at *field.Path) *field.Error {
	return field.Forbidden(at, file+" is written by Drover, by the profile or by another field of the class")
}

// allFiles returns the files of the document by path, including those of its units.
func (d *draft) allFiles() []string {
	var out []string
	for _, f := range d.Files {
		out = append(out, f.Path)
	}
	for _, u := range d.Units {
		for _, f := range u.files() {
			out = append(out, f.Path)
		}
	}
	return out
}

// addUnit adds a unit to the document, or its drop-ins to a unit that the document has.
func (d *draft) addUnit(u Unit, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	all := d.allFiles()
	for _, f := range u.files() {
		if slices.Contains(all, f.Path) {
			errs = append(errs, taken(f.Path, at))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	i := slices.IndexFunc(d.Units, func(have Unit) bool { return have.Name == u.Name })
	if i < 0 {
		d.Units = append(d.Units, u)
		return nil
	}
	have := d.Units[i]
	have.Enabled = have.Enabled || u.Enabled
	have.DropIns = slices.Concat(have.DropIns, u.DropIns)
	if have.Content == "" {
		have.Content = u.Content
	}
	d.Units = slices.Clone(d.Units)
	d.Units[i] = have
	return nil
}

// addDropIn adds a drop-in of Drover to a unit of the document or the image.
func (d *draft) addDropIn(unit, name, content string, at *field.Path) field.ErrorList {
	return d.addUnit(Unit{Name: unit, DropIns: []DropIn{{Name: name, Content: content}}}, at)
}
