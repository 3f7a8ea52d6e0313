package vm

import (
	"fmt"
	"time"
)

// minPollInterval keeps a binding from spending the requests of an account on one VM.
const minPollInterval = 10 * time.Second

// pollIntervalOf a VM, empty if its provider looks at it as often as at all.
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
