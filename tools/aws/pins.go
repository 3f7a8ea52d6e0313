//go:build tools

// Package aws pins the module that has Amazon's models of its APIs. Tests read the models from the module cache; nothing is
// built of it.
package aws

import _ "github.com/aws/aws-sdk-go/aws"
