package vm

import (
	"fmt"
	"time"
)

// minPollInterval keeps a binding from using up the API quota of an account with one VM.
const minPollInterval = 10 * time.Second

// pollIntervalOf returns the poll interval of a VM, empty for the default of its provider.
func (b *Binding) pollIntervalOf(variables map[string]any) (string, error) {
	if b.pollInterval == nil {
		return "", nil
	}
	text, err := evalAs[string](b.pollInterval, variables)
	if err != nil || text == "" {
		return "", err
	}
	if d, err := time.ParseDuration(text); err != nil || d < minPollInterval {
		return "", b.pollInterval.error(1, 0, fmt.Sprintf("must give a duration of at least %s, such as \"1m\", or \"\": gives %q", minPollInterval, text))
	}
	return text, nil
}
