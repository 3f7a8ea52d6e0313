package plugin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// severityError is Diagnostic.ERROR. Warnings are for users at a terminal.
const severityError = 1

// A Diagnostic is an error of a provider.
type Diagnostic struct {
	Summary, Detail string
	// Path of the argument, like "network[0].ip", empty if the error is of none.
	Path string
	// IsOfConfiguration means that it is an argument of the provider, and not of a resource.
	IsOfConfiguration bool
}

// Error names the argument, if there is one.
func (d *Diagnostic) Error() string {
	text := d.Summary
	if d.Detail != "" && d.Detail != d.Summary {
		text += ": " + d.Detail
	}
	if d.Path == "" {
		return text
	}
	of := "arguments"
	if d.IsOfConfiguration {
		of = "configuration"
	}
	return fmt.Sprintf("%s.%s: %s", of, d.Path, text)
}

// ofConfiguration marks the diagnostics in an error.
func ofConfiguration(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { // Of errors.Join itself.
		for _, e := range many.Unwrap() {
			_ = ofConfiguration(e)
		}
	}
	if d, ok := err.(*Diagnostic); ok { //nolint:errorlint // As it was made.
		d.IsOfConfiguration = true
	}
	return err
}

// diagnosticError reads the errors among diagnostics, nil if there are none.
func diagnosticError(list [][]byte) error {
	var errs []error
	for _, b := range list {
		d := &Diagnostic{}
		severity := int64(0)
		err := each(b, func(f field) error {
			switch f.number {
			case 1:
				severity = f.integer()
			case 2:
				d.Summary = f.text()
			case 3:
				d.Detail = f.text()
			case 4:
				path, err := readPath(f.bytes)
				d.Path = path
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
		if severity == severityError {
			errs = append(errs, d)
		}
	}
	return errors.Join(errs...)
}

func readPath(b []byte) (string, error) {
	path := &strings.Builder{}
	err := each(b, func(step field) error {
		return each(step.bytes, func(f field) error {
			switch f.number {
			case 1:
				if path.Len() > 0 {
					path.WriteByte('.')
				}
				path.WriteString(f.text())
			case 2:
				path.WriteString("[" + strconv.Quote(f.text()) + "]")
			case 3:
				path.WriteString("[" + strconv.FormatInt(f.integer(), 10) + "]")
			}
			return nil
		})
	})
	return path.String(), err
}
