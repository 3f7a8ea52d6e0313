// Package apis has the generators of everything that is derived from the API types.
package apis

//go:generate go run ../internal/cloudgen
//go:generate go run ../internal/storedgen */v1alpha1
//go:generate go tool controller-gen object:headerFile=../hack/boilerplate.go.txt paths=./...
//go:generate go tool -modfile=../tools/go.mod angryjet generate-methodsets --header-file=../hack/boilerplate.go.txt ./...
//go:generate go run ../internal/xrdgen
//go:generate go run ../internal/conditionsgen
//go:generate go run ../internal/refgen
//go:generate go tool -modfile=../tools/refdocs/go.mod crd-ref-docs --source-path=. --config=../tools/refdocs/config.yaml --templates-dir=../tools/refdocs/templates --renderer=markdown --output-path=../docs/reference/api.md --log-level=ERROR
//go:generate go run ../internal/refgen forms
