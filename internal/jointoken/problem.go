package jointoken

import (
	"errors"

	"github.com/drover-dev/drover/internal/plan"
)

// A ProblemError is an error that a user can fix.
type ProblemError struct{ plan.Problem }

func (e *ProblemError) Error() string { return e.Message }

// ProblemOf returns the problem in an error that a user can fix, nil if there is none.
func ProblemOf(err error) *plan.Problem {
	var p *ProblemError
	if errors.As(err, &p) {
		return &p.Problem
	}
	return nil
}
