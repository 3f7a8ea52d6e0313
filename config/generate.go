// Package config has the upjet configuration of each cloud whose Terraform
// provider is lifted.
package config

//go:generate sh -c "cd .. && go run ./config/generate"
