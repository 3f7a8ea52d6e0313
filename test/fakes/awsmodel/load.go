package awsmodel

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module has the models. tools/aws pins its version.
const module = "github.com/aws/aws-sdk-go"

// Load returns the models of EC2 and of the Security Token Service. It reads them from the module cache, once per
// process, and downloads the module first if the cache lacks it. It must not be called in a bubble of testing/synctest.
func Load(t testing.TB) Models {
	t.Helper()
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Read returns the models as Load does.
var Read = sync.OnceValues(func() (Models, error) {
	root, err := run("", "list", "-m", "-f", "{{.Dir}}", "github.com/drover-dev/drover")
	if err != nil {
		return Models{}, err
	}
	out, err := run(filepath.Join(strings.TrimSpace(root), "tools", "aws"), "mod", "download", "-json", module)
	if err != nil {
		return Models{}, err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return Models{}, err
	}
	models := filepath.Join(found.Dir, "models", "apis")
	ec2, err := read(filepath.Join(models, "ec2", "2016-11-15"))
	if err != nil {
		return Models{}, err
	}
	sts, err := read(filepath.Join(models, "sts", "2011-06-15"))
	return Models{EC2: ec2, STS: sts}, err
})

func run(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

func read(dir string) (*Model, error) {
	b, err := os.ReadFile(filepath.Join(dir, "api-2.json"))
	if err != nil {
		return nil, err
	}
	m := &Model{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, err
	}
	for _, name := range []string{"docs-2.json", "waiters-2.json"} {
		docs, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) { // The Security Token Service has no waiters.
			return nil, err
		}
		m.docs += string(docs)
	}
	return m, nil
}
