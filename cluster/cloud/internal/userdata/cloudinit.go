package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	header = "#cloud-config"
	// jinja is the line before the header of a document that cloud-init renders as a template.
	jinja = "## template: jinja"
)

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

// parseCloudConfig reads a #cloud-config document.
func parseCloudConfig(text []byte) (*Instance, error) {
	if first, rest, _ := bytes.Cut(text, []byte("\n")); strings.TrimRight(string(first), " \r") == jinja {
		if bytes.Contains(rest, []byte("{{")) || bytes.Contains(rest, []byte("{%")) {
			return nil, errors.New("user data: a simulated VM renders no template: it must have neither {{ nor {%")
		}
		text = rest
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
