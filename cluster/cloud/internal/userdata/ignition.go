package userdata

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"
)

type ignition struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []struct {
			Path     string `json:"path"`
			Contents struct {
				Source      string `json:"source"`
				Compression string `json:"compression"`
			} `json:"contents"`
		} `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []struct {
			Name     string `json:"name"`
			Enabled  bool   `json:"enabled"`
			Contents string `json:"contents"`
			DropIns  []struct {
				Name     string `json:"name"`
				Contents string `json:"contents"`
			} `json:"dropins"`
		} `json:"units"`
	} `json:"systemd"`
}

// pathHostname is the file from which systemd reads the host name.
const pathHostname = "/etc/hostname"

// parseIgnition reads an Ignition document of spec 3. At the first boot, systemd starts the enabled
// units.
func parseIgnition(text []byte) (*Instance, error) {
	var c ignition
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	if !strings.HasPrefix(c.Ignition.Version, "3.") {
		return nil, fmt.Errorf("user data: ignition.version: invalid value %q: must be 3.x", c.Ignition.Version)
	}
	out := &Instance{Files: map[string]string{}}
	for i, f := range c.Storage.Files {
		if !path.IsAbs(f.Path) {
			return nil, fmt.Errorf("storage.files[%d].path: invalid value %q: must be an absolute path", i, f.Path)
		}
		content, err := dataOf(f.Contents.Source)
		if err == nil && f.Contents.Compression != "" {
			content, err = decode(content, f.Contents.Compression)
		}
		if err != nil {
			return nil, fmt.Errorf("storage.files[%d] %s: %w", i, f.Path, err)
		}
		out.Files[path.Clean(f.Path)] = content
	}
	for _, u := range c.Systemd.Units {
		file := path.Join("/etc/systemd/system", u.Name)
		if u.Contents != "" {
			out.Files[file] = u.Contents
		}
		for _, d := range u.DropIns {
			out.Files[path.Join(file+".d", d.Name)] = d.Contents
		}
		if u.Enabled {
			out.Commands = append(out.Commands, []string{"systemctl", "start", u.Name})
		}
	}
	out.Hostname = strings.TrimSpace(out.Files[pathHostname])
	return out, nil
}

// dataOf returns the content of a data: URL. A simulated VM cannot download other URLs.
func dataOf(source string) (string, error) {
	rest, ok := strings.CutPrefix(source, "data:")
	media, data, found := strings.Cut(rest, ",")
	if !ok || !found {
		return "", fmt.Errorf("contents.source: must be a data: URL")
	}
	plain, err := url.PathUnescape(data)
	if err != nil {
		return "", fmt.Errorf("contents.source: is not a data: URL")
	}
	if !strings.HasSuffix(media, ";base64") {
		return plain, nil
	}
	b, err := base64.StdEncoding.DecodeString(plain)
	if err != nil {
		return "", fmt.Errorf("contents.source: is not base64: %w", err)
	}
	return string(b), nil
}
