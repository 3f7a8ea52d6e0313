// Package cloudinit reads user data as cloud-init does, as far as it makes a VM
// a worker: host name, write_files and runcmd. Other keys are left alone.
package cloudinit

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

const header = "#cloud-config"

// Instance is what user data makes of a VM.
type Instance struct {
	// Hostname is empty when the user data sets none.
	Hostname string
	// Files that were written, content by path.
	Files map[string]string
	// Commands that runcmd runs, in order: the words of each.
	Commands [][]string
}

type config struct {
	Hostname   string      `yaml:"hostname"`
	FQDN       string      `yaml:"fqdn"`
	WriteFiles []writeFile `yaml:"write_files"`
	RunCmd     []any       `yaml:"runcmd"`
}

type writeFile struct {
	Path     string `yaml:"path"`
	Content  string `yaml:"content"`
	Encoding string `yaml:"encoding"`
	Append   bool   `yaml:"append"`
}

// Parse reads user data, plain or gzip. Its errors name the field, and never
// quote content: there may be a token in it.
func Parse(userData []byte) (*Instance, error) {
	if len(userData) == 0 {
		return nil, errors.New("there is no user data")
	}
	text, err := gunzipIfGzip(userData)
	if err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	if first, _, _ := bytes.Cut(text, []byte("\n")); strings.TrimRight(string(first), " \r") != header {
		return nil, fmt.Errorf("user data: its first line must be %s", header)
	}
	var c config
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}

	out := &Instance{Hostname: c.Hostname, Files: map[string]string{}}
	if out.Hostname == "" {
		out.Hostname, _, _ = strings.Cut(c.FQDN, ".")
	}
	for i, f := range c.WriteFiles {
		if !path.IsAbs(f.Path) {
			return nil, fmt.Errorf("write_files[%d].path: invalid value %q: must be an absolute path", i, f.Path)
		}
		content, err := decode(f.Content, f.Encoding)
		if err != nil {
			return nil, fmt.Errorf("write_files[%d] %s: %w", i, f.Path, err)
		}
		if f.Append {
			content = out.Files[path.Clean(f.Path)] + content
		}
		out.Files[path.Clean(f.Path)] = content
	}
	for i, c := range c.RunCmd {
		commands, err := commandsOf(c)
		if err != nil {
			return nil, fmt.Errorf("runcmd[%d]: %w", i, err)
		}
		out.Commands = append(out.Commands, commands...)
	}
	return out, nil
}
