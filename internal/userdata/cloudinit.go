package userdata

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// cloudConfigHeader is the first line of a cloud-config document.
const cloudConfigHeader = "#cloud-config\n"

// A cloudConfig is the part of cloud-init's #cloud-config that Drover uses. It writes files and starts units:
// cloud-init does not run a command again after a reboot, and continues after a failed one.
type cloudConfig struct {
	Hostname       string      `json:"hostname,omitempty"`
	AuthorizedKeys []string    `json:"ssh_authorized_keys,omitempty"`
	Users          []any       `json:"users,omitempty"`
	BootCmd        [][]string  `json:"bootcmd"`
	WriteFiles     []cloudFile `json:"write_files"`
	RunCmd         [][]string  `json:"runcmd"`
}

// repeatUntilWritten runs at each boot, before cloud-init writes files. A power cut can leave files without
// their content, which cloud-init considers as written. Until bootstrapScript has written everything to the
// disk, cloud-init forgets its progress. The files that cloud-init itself has written so far must be on the
// disk: if one of them is empty, it runs nothing of the user data, not even this.
const repeatUntilWritten = "[ -e " + pathWritten + " ] || { rm -f /var/lib/cloud/instance/sem/config_*; sync; }"

type cloudUser struct {
	Name string `json:"name"`
	// NoUserGroup lets the user have the name of a group of the image: useradd fails to create a
	// group that exists.
	NoUserGroup    bool     `json:"no_user_group"`
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
		c.Users = []any{"default", cloudUser{Name: d.LoginUser, NoUserGroup: true, AuthorizedKeys: d.AuthorizedKeys}}
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
	c.BootCmd = [][]string{{"sh", "-c", repeatUntilWritten}}
	c.RunCmd = [][]string{{"systemctl", "daemon-reload"}, start}

	doc, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the cloud-init document: %w", err)
	}
	return bytes.Join([][]byte{[]byte(cloudConfigHeader), doc}, nil), nil
}
