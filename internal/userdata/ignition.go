package userdata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// ignitionVersion is the spec that all current versions of Flatcar and Fedora CoreOS support.
const ignitionVersion = "3.3.0"

// An ignitionConfig is the part of Ignition's spec that Drover uses. The types of Ignition
// itself encode a hundred empty objects per document.
type ignitionConfig struct {
	Ignition ignitionHeader  `json:"ignition"`
	Passwd   *ignitionPasswd `json:"passwd,omitempty"`
	Storage  ignitionStorage `json:"storage"`
	Systemd  ignitionSystemd `json:"systemd"`
}

type ignitionHeader struct {
	Version string `json:"version"`
}

type ignitionPasswd struct {
	Users []ignitionUser `json:"users"`
}

type ignitionUser struct {
	Name string `json:"name"`
	// NoUserGroup is as in cloudUser.
	NoUserGroup bool     `json:"noUserGroup,omitempty"`
	Keys        []string `json:"sshAuthorizedKeys"`
}

type ignitionStorage struct {
	Files []ignitionFile `json:"files"`
}

type ignitionFile struct {
	Path      string           `json:"path"`
	Mode      int              `json:"mode"`
	Overwrite bool             `json:"overwrite"`
	Contents  ignitionContents `json:"contents"`
}

type ignitionContents struct {
	Source string `json:"source"`
}

type ignitionSystemd struct {
	Units []ignitionUnit `json:"units"`
}

type ignitionUnit struct {
	Name     string           `json:"name"`
	Enabled  bool             `json:"enabled,omitempty"`
	Contents string           `json:"contents,omitempty"`
	DropIns  []ignitionDropIn `json:"dropins,omitempty"`
}

type ignitionDropIn struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
}

// ignitionLogin is the user of images with Ignition.
const ignitionLogin = "core"

// ignition encodes an assembled document.
func (d Document) ignition() ([]byte, error) {
	c := ignitionConfig{Ignition: ignitionHeader{Version: ignitionVersion}}
	if len(d.AuthorizedKeys) > 0 {
		c.Passwd = &ignitionPasswd{Users: []ignitionUser{{Name: cmp.Or(d.LoginUser, ignitionLogin), NoUserGroup: d.LoginUser != "", Keys: d.AuthorizedKeys}}}
	}
	files := d.Files
	if d.Hostname != "" {
		files = append([]File{{Path: "/etc/hostname", Content: d.Hostname + "\n"}}, files...)
	}
	for _, f := range files {
		c.Storage.Files = append(c.Storage.Files, ignitionFile{
			Path: f.Path, Mode: f.mode(), Overwrite: true, Contents: ignitionContents{Source: dataURL(f)},
		})
	}
	for _, u := range d.Units {
		out := ignitionUnit{Name: u.Name, Enabled: u.Enabled, Contents: u.Content}
		for _, drop := range u.DropIns {
			out.DropIns = append(out.DropIns, ignitionDropIn{Name: drop.Name, Contents: drop.Content})
		}
		c.Systemd.Units = append(c.Systemd.Units, out)
	}
	doc, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the Ignition document: %w", err)
	}
	return doc, nil
}

// dataURL returns the data URL of a file's content. Placeholders of plain files are escaped like any other
// text, and Fill recognizes them in that form.
func dataURL(f File) string {
	if f.IsBase64 {
		return "data:;base64," + f.Content
	}
	return "data:," + escape(f.Content)
}

// unescaped characters of a data URL. A $ is always escaped, so that no placeholder is filled with an unescaped
// value.
const unescaped = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!~*'();/?:@&=+,"

// escape content for a data URL.
func escape(s string) string {
	b := strings.Builder{}
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(unescaped, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
