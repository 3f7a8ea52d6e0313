// Package config has the upjet configuration of each cloud whose Terraform provider is converted to
// managed resources.
package config

//go:generate sh -c "cd .. && go run ./config/generate"
