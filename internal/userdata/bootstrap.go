package userdata

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Paths of the bootstrap of a VM. SELinux labels files below a folder called bin as executable.
const (
	bootstrapUnitName = "drover-bootstrap.service"
	pathBootstrap     = "/opt/drover/bin/bootstrap"
	dirSteps          = "/opt/drover/bin/steps"
	pathEnvironment   = "/etc/drover/bootstrap.env"
	// pathWritten exists when all files are on the disk.
	pathWritten = "/var/lib/drover/written"
)

// bootstrapScript runs the steps. It leaves a stamp for each step that succeeded.
//
//go:embed scripts/bootstrap.sh
var bootstrapScript string

// bootstrapUnit retries for ever: an unavailable mirror returns, and a VM that rebooted in between continues at
// the same step. Its output is on the console, where clouds show it.
const bootstrapUnit = `[Unit]
Description=Drover: make this machine a Node
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=` + pathEnvironment + `
ExecStart=` + pathBootstrap + `
Restart=on-failure
RestartSec=5
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
`

// assembled returns the document with its steps and their environment as files, and the unit that runs them: an
// encoder only has to support files and units.
func (d Document) assembled() (Document, error) {
	environment, err := environmentFile(d.Environment)
	if err != nil {
		return d, err
	}
	files := append(slices.Clone(d.Files),
		File{Path: pathEnvironment, Content: environment, Mode: 0o600},
		File{Path: pathBootstrap, Content: bootstrapScript, Mode: 0o755},
	)
	for i, s := range d.Steps {
		files = append(files, File{Path: path.Join(dirSteps, fmt.Sprintf("%02d-%s", i, s.Name)), Content: s.Script, Mode: 0o755})
	}
	d.Files = files
	d.Units = append(slices.Clone(d.Units), Unit{Name: bootstrapUnitName, Content: bootstrapUnit, Enabled: true})
	d.Steps, d.Environment = nil, nil
	return d, nil
}

// escapes of an environment file that systemd and a shell read in the same way.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// environmentFile encodes variables, as systemd and a shell read them.
func environmentFile(environment map[string]string) (string, error) {
	b := strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		value := environment[name]
		if i := strings.IndexFunc(value, isControl); i >= 0 {
			return "", fmt.Errorf("the value of %s has the control character %q", name, value[i])
		}
		fmt.Fprintf(&b, "%s=\"%s\"\n", name, escapes.Replace(value))
	}
	return b.String(), nil
}

// isControl reports whether systemd refuses a character in an environment file.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || r == 0x7f
}
