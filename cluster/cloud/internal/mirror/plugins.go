package mirror

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// AddPlugins writes a release of network plugins to the folder of a mirror, with its checksum
// beside it. The version is one such as v1.9.1.
func AddPlugins(dir, version string, programs []string) error {
	var files []executable
	for _, p := range programs {
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files = append(files, executable{"./" + filepath.Base(p), b})
	}
	_, packed, err := archive(files)
	if err != nil {
		return err
	}
	name := "cni-plugins-linux-amd64-" + version + ".tgz"
	to := filepath.Join(dir, plugins, version, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	sum := fmt.Sprintf("%s  %s\n", strings.TrimPrefix(digestOf(packed), "sha256:"), name)
	return errors.Join(os.WriteFile(to, packed, 0o644), os.WriteFile(to+".sha256", []byte(sum), 0o644))
}
