// Package userdata reads user data as cloud-init and Ignition do, as far as it makes a VM a worker:
// host name, files, commands and services. Other keys are ignored.
package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/drover-dev/drover/cluster/cloud/internal/systemd"
)

// Instance is the state of a VM after its user data was applied.
type Instance struct {
	// Hostname is empty if the user data has none.
	Hostname string
	// Files that were written: their contents by path.
	Files map[string]string
	// Commands that run, in order: the words of each. Commands of services that a command starts
	// are at the end.
	Commands [][]string
	// Environment of the services that were started.
	Environment map[string]string
}

// Parse reads user data, plain or gzip. Its errors name the field and never quote content, which
// may contain a token.
func Parse(userData []byte) (*Instance, error) {
	if len(userData) == 0 {
		return nil, errors.New("there is no user data")
	}
	text, err := gunzipIfGzip(userData)
	if err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	parse := parseCloudConfig
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		parse = parseIgnition
	}
	in, err := parse(text)
	if err != nil {
		return nil, err
	}
	return in, in.runServices()
}

// dirSteps is the folder beside the executable of a service with the scripts that it runs, in the
// order of their names.
const dirSteps = "steps"

// runServices adds the commands of the services that a command starts, if the files have their
// units: an executable that is a script runs the steps beside it.
func (in *Instance) runServices() error {
	for _, command := range slices.Clone(in.Commands) {
		for _, unit := range systemd.Started(command) {
			if !systemd.Has(in.Files, unit) {
				continue
			}
			if err := in.runSteps(unit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Instance) runSteps(unit string) error {
	argv, env, err := systemd.CommandLine(in.Files, unit)
	if err != nil {
		return nil //nolint:nilerr // The code that runs the service reports the error.
	}
	if _, isScript := in.Files[argv[0]]; !isScript {
		return nil
	}
	dir := path.Join(path.Dir(argv[0]), dirSteps)
	for _, file := range slices.Sorted(maps.Keys(in.Files)) {
		if path.Dir(file) != dir {
			continue
		}
		commands, err := shellCommands(in.Files[file])
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		in.Commands = append(append(in.Commands, []string{file}), commands...)
	}
	if in.Environment == nil {
		in.Environment = map[string]string{}
	}
	maps.Copy(in.Environment, env)
	return nil
}
