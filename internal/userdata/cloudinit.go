package userdata

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// cloudConfigHeader is the first line of a cloud-config document.
const cloudConfigHeader = "#cloud-config\n"

// A cloudConfig is the part of cloud-init's #cloud-config that Drover uses. It writes
// files and starts units: cloud-init runs no command again after a reboot, and goes on
// after one that failed.
type cloudConfig struct {
	Hostname       string      `json:"hostname,omitempty"`
	AuthorizedKeys []string    `json:"ssh_authorized_keys,omitempty"`
	Users          []any       `json:"users,omitempty"`
	WriteFiles     []cloudFile `json:"write_files"`
	RunCmd         [][]string  `json:"runcmd"`
}

type cloudUser struct {
	Name           string   `json:"name"`
	AuthorizedKeys []string `json:"ssh_authorized_keys"`
}

type cloudFile struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

// cloudInit encodes an assembled document.
func (d Document) cloudInit() ([]byte, error) {
	c := cloudConfig{Hostname: d.Hostname, AuthorizedKeys: d.AuthorizedKeys}
	if d.LoginUser != "" {
		// Without the first entry, the image would lose the user that it has for logins.
		c.Users = []any{"default", cloudUser{Name: d.LoginUser, AuthorizedKeys: d.AuthorizedKeys}}
		c.AuthorizedKeys = nil
	}
	files := d.Files
	start := []string{"systemctl", "enable", "--now", "--no-block"}
	for _, u := range d.Units {
		files = append(files, u.files()...)
		if u.Enabled {
			start = append(start, u.Name)
		}
	}
	for _, f := range files {
		out := cloudFile{Path: f.Path, Permissions: fmt.Sprintf("%04o", f.mode()), Content: f.Content}
		if f.IsBase64 {
			out.Encoding = "b64"
		}
		c.WriteFiles = append(c.WriteFiles, out)
	}
	c.RunCmd = [][]string{{"systemctl", "daemon-reload"}, start}

	doc, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the cloud-init document: %w", err)
	}
	return bytes.Join([][]byte{[]byte(cloudConfigHeader), doc}, nil), nil
}
