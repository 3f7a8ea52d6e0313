package userdata

import (
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// commandsOf splits an item of runcmd into commands: a list is one command, and a string is a line
// for the shell.
func commandsOf(item any) ([][]string, error) {
	switch v := item.(type) {
	case string:
		return shellCommands(v)
	case []any:
		words := make([]string, 0, len(v))
		for _, w := range v {
			words = append(words, fmt.Sprint(w))
		}
		if len(words) == 0 {
			return nil, nil
		}
		if script, ok := shellScript(words); ok {
			return shellCommands(script)
		}
		return [][]string{words}, nil
	default:
		return nil, fmt.Errorf("invalid value %v: must be a string or a list of strings", item)
	}
}

// shellCommands returns the commands in a script, in the order of its text. It assumes that
// commands in a loop or behind a condition run.
func shellCommands(script string) ([][]string, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("is not a shell command: %w", err)
	}
	var out [][]string
	var failed error
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 || failed != nil {
			return true
		}
		words, err := expand.Fields(&expand.Config{}, call.Args...)
		if err != nil || len(words) == 0 {
			// Its words depend on the run time, such as the output of another command. The
			// simulation needs no such command.
			return true
		}
		if script, ok := shellScript(words); ok {
			var inner [][]string
			inner, failed = shellCommands(script)
			out = append(out, inner...)
			return true
		}
		out = append(out, words)
		return true
	})
	return out, failed
}

// shellScript returns the script in words such as sh -c SCRIPT.
func shellScript(words []string) (string, bool) {
	switch path.Base(words[0]) {
	case "sh", "bash", "dash":
	default:
		return "", false
	}
	for i, w := range words[1:] {
		if strings.HasPrefix(w, "-") && strings.HasSuffix(w, "c") && i+2 < len(words) {
			return words[i+2], true
		}
	}
	return "", false
}
