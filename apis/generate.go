// Package apis generates what is made from the API types.
package apis

//go:generate go tool controller-gen object:headerFile=../hack/boilerplate.go.txt paths=./machine/... paths=./cluster/... paths=./vsphere/... paths=./fn/... paths=./inventory/...
//go:generate go tool -modfile=../tools/go.mod angryjet generate-methodsets --header-file=../hack/boilerplate.go.txt ./vsphere/...
//go:generate go run ../internal/xrdgen
//go:generate go run ../internal/conditionsgen
