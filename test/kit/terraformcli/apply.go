package terraformcli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// A CLI evaluates arguments with the real Terraform, run like upjet's CLI runtime does: it writes
// a main.tf.json and applies it (upjet pkg/terraform/files.go and workspace.go). The resource is
// terraform_data of Terraform's built-in provider, so no provider is downloaded.
type CLI struct {
	binary string
	// turn serializes the runs of Terraform: each takes half a second of CPU time.
	turn sync.Mutex
	// seen has the answers by arguments: after an error, a provider applies the same arguments
	// again.
	seen map[string]answer
}

type answer struct {
	arguments map[string]any
	err       error
}

// Find Terraform in PATH. It returns nil if Terraform is not installed.
func Find() *CLI {
	binary, err := exec.LookPath("terraform")
	if err != nil {
		return nil
	}
	return &CLI{binary: binary, seen: map[string]answer{}}
}

// Apply the arguments of a resource, and return them as Terraform passes them to its provider.
func (c *CLI) Apply(ctx context.Context, arguments map[string]any) (map[string]any, error) {
	key, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	if a, ok := c.seen[string(key)]; ok {
		return copied(a)
	}
	out, err := c.apply(ctx, arguments)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.seen[string(key)] = answer{out, err}
	return copied(c.seen[string(key)])
}

// copied returns a copy of the answer, which the caller may change.
func copied(a answer) (map[string]any, error) {
	if a.err != nil {
		return nil, a.err
	}
	b, err := json.Marshal(a.arguments)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(b, &out)
}

func (c *CLI) apply(ctx context.Context, arguments map[string]any) (map[string]any, error) {
	dir, err := os.MkdirTemp("", "terraform-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := json.Marshal(map[string]any{
		"resource": map[string]any{"terraform_data": map[string]any{"vm": map[string]any{"input": arguments}}},
		"output":   map[string]any{"vm": map[string]any{"value": "${terraform_data.vm.output}"}},
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf.json"), b, 0o600); err != nil {
		return nil, err
	}
	if _, err := c.run(ctx, dir, "init", "-input=false", "-backend=false"); err != nil {
		return nil, fmt.Errorf("terraform init failed: %w", err)
	}
	// With -json, Terraform prints each error as a line.
	lines, err := c.run(ctx, dir, "apply", "-auto-approve", "-input=false", "-lock=false", "-json")
	if err != nil {
		return nil, applyError(lines, err)
	}
	state, err := c.run(ctx, dir, "output", "-json", "vm")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(state, &out)
}

func (c *CLI) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return cmd.Output()
}

// applyError returns the error that upjet makes of Terraform's log (upjet pkg/terraform/errors).
func applyError(lines []byte, failed error) error {
	var messages []string
	for line := range bytes.Lines(lines) {
		var l struct {
			Level      string `json:"@level"`
			Diagnostic struct {
				Severity, Summary, Detail string
			} `json:"diagnostic"`
		}
		if json.Unmarshal(line, &l) == nil && l.Level == "error" && l.Diagnostic.Severity == "error" {
			messages = append(messages, l.Diagnostic.Summary+": "+l.Diagnostic.Detail)
		}
	}
	if len(messages) == 0 {
		return fmt.Errorf("apply failed: %w", failed)
	}
	return fmt.Errorf("apply failed: %s", strings.Join(messages, "\n"))
}
