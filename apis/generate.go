// Package apis generates what is made from the API types.
package apis

//go:generate go tool controller-gen object:headerFile=../hack/boilerplate.go.txt paths=./machine/... paths=./cluster/... paths=./fn/...
//go:generate go run ../internal/xrdgen
