package jointoken

import (
	"errors"

	"github.com/drover-dev/drover/internal/plan"
)

// A ProblemError is an error that a user can mend.
type ProblemError struct{ plan.Problem }

func (e *ProblemError) Error() string { return e.Message }

// ProblemOf returns what a user can mend of an error, nil if there is nothing.
func ProblemOf(err error) *plan.Problem {
	var p *ProblemError
	if errors.As(err, &p) {
		return &p.Problem
	}
	return nil
}
