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

// A CLI evaluates arguments with the real Terraform, as upjet's CLI runtime has it run: it writes a
// main.tf.json and applies that (upjet pkg/terraform/files.go and workspace.go). The resource is
// terraform_data, which Terraform has built in, so that no provider is downloaded.
type CLI struct {
	binary string
	// turn lets one Terraform run at a time: each takes half a second of a processor.
	turn sync.Mutex
	// seen are answers by the arguments: a provider that is refused applies the same again.
	seen map[string]answer
}

type answer struct {
	arguments map[string]any
	err       error
}

// Find Terraform in PATH. Without one it returns nil.
func Find() *CLI {
	binary, err := exec.LookPath("terraform")
	if err != nil {
		return nil
	}
	return &CLI{binary: binary, seen: map[string]answer{}}
}

// Apply the arguments of a resource, and return them as Terraform hands them to its provider.
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

// copied answer: who asked may change it.
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
	// With -json it reports each error as a line.
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
	cmd := exec.CommandContext(ctx, c.binary, args...) //nolint:gosec // From PATH.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return cmd.Output()
}

// applyError has the words of upjet for what Terraform logged (upjet pkg/terraform/errors).
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
