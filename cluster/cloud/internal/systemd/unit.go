// Package systemd reads systemd units in the files of a VM, as far as they start services.
package systemd

import (
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// unitDirs in systemd's order of precedence.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// Started returns the services that a command starts, with their suffix.
func Started(command []string) []string {
	if path.Base(command[0]) != "systemctl" {
		return nil
	}
	starts := slices.ContainsFunc(command, func(w string) bool {
		return w == "start" || w == "restart" || w == "reload-or-restart"
	}) || slices.Contains(command, "enable") && slices.Contains(command, "--now")
	if !starts {
		return nil
	}
	var out []string
	for _, w := range command[1:] {
		if !strings.HasPrefix(w, "-") && !slices.Contains(verbs, w) {
			out = append(out, strings.TrimSuffix(w, suffix)+suffix)
		}
	}
	return out
}

const suffix = ".service"

// verbs of systemctl that start units.
var verbs = []string{"start", "restart", "reload-or-restart", "enable"}

// Has reports whether the files have a unit.
func Has(files map[string]string, unit string) bool {
	return slices.ContainsFunc(unitDirs, func(dir string) bool { _, ok := files[path.Join(dir, unit)]; return ok })
}

// CommandLine returns the command that systemd executes for a service and its drop-ins, with
// variables of the environment expanded, and that environment.
func CommandLine(files map[string]string, unit string) (argv []string, env map[string]string, err error) {
	service, err := serviceSection(files, unit)
	if err != nil {
		return nil, nil, err
	}
	start := service["ExecStart"]
	if len(start) != 1 {
		return nil, nil, fmt.Errorf("%s: has %d ExecStart lines, must have one", unit, len(start))
	}
	if env, err = environment(service, files, unit); err != nil {
		return nil, nil, err
	}
	words, err := shell.Fields(strings.TrimLeft(start[0], "-@:+!"), func(name string) string { return env[name] })
	if err != nil {
		return nil, nil, fmt.Errorf("%s: ExecStart is not a command line: %w", unit, err)
	}
	if len(words) == 0 {
		return nil, nil, fmt.Errorf("%s: ExecStart is not a command line: it has no words", unit)
	}
	return words, env, nil
}

// serviceSection returns the [Service] section: the values by key, in order.
func serviceSection(files map[string]string, unit string) (map[string][]string, error) {
	var sources []string
	for _, dir := range unitDirs {
		if _, ok := files[path.Join(dir, unit)]; ok {
			sources = append(sources, path.Join(dir, unit))
			break
		}
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%s: unit not found: %s is missing", unit, path.Join(unitDirs[0], unit))
	}
	sources = append(sources, dropIns(files, unit)...)

	out := map[string][]string{}
	for _, s := range sources {
		section := ""
		for line := range strings.Lines(strings.ReplaceAll(files[s], "\\\n", " ")) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' || line[0] == ';' {
				continue
			}
			if line[0] == '[' {
				section = strings.Trim(line, "[]")
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				return nil, fmt.Errorf("%s: %s: a line is neither a section nor an assignment", unit, s)
			}
			if section != "Service" {
				continue
			}
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			if value == "" {
				delete(out, key) // An empty value resets the list.
				continue
			}
			out[key] = append(out[key], value)
		}
	}
	return out, nil
}

// dropIns returns the drop-ins of all directories in the order of their base names. If two have the
// same name, the one in the directory of higher precedence is used.
func dropIns(files map[string]string, unit string) []string {
	byName := map[string]string{}
	for _, dir := range slices.Backward(unitDirs) {
		for f := range files {
			if path.Dir(f) == path.Join(dir, unit+".d") && path.Ext(f) == ".conf" {
				byName[path.Base(f)] = f
			}
		}
	}
	out := make([]string, 0, len(byName))
	for _, f := range byName {
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return path.Base(out[i]) < path.Base(out[j]) })
	return out
}

func environment(service map[string][]string, files map[string]string, unit string) (map[string]string, error) {
	out := map[string]string{}
	for _, line := range service["Environment"] {
		words, err := shell.Fields(line, func(string) string { return "" })
		if err != nil {
			return nil, fmt.Errorf("%s: Environment: %w", unit, err)
		}
		for _, w := range words {
			if k, v, ok := strings.Cut(w, "="); ok {
				out[k] = v
			}
		}
	}
	for _, f := range service["EnvironmentFile"] {
		name, optional := strings.CutPrefix(f, "-")
		text, ok := files[path.Clean(name)]
		if !ok && !optional {
			return nil, fmt.Errorf("%s: EnvironmentFile %s is missing", unit, name)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' || line[0] == ';' {
				continue
			}
			if k, v, ok := strings.Cut(line, "="); ok {
				out[strings.TrimSpace(k)] = unquote(strings.TrimSpace(v))
			}
		}
	}
	return out, nil
}

// unescape replaces the escape sequences that systemd replaces between quotes.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, "$", "\\`", "`")

// unquote removes the quotes of a value of an environment file. Unlike in a shell, a value without
// quotes may have blanks.
func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		v = v[1 : len(v)-1]
	}
	return unescape.Replace(v)
}
