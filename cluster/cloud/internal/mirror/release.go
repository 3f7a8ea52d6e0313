package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
)

// AddRelease copies a program of a Kubernetes release, such as kubelet, to the folder of a mirror,
// with its checksum beside it. A VM may download the previous file at the same time.
func AddRelease(dir, version, program string) error {
	to := filepath.Join(dir, releases, version, "bin", "linux", "amd64", filepath.Base(program))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(program)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to+".partial", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, sum), in); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := os.WriteFile(to+".sha256", []byte(hex.EncodeToString(sum.Sum(nil))+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(to+".partial", to)
}
