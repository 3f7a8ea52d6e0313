// Package karpenter is the root of the module: it has the generators.
package karpenter

//go:generate controller-gen object:headerFile=../hack/boilerplate.go.txt paths=./apis/... paths=./internal/drover
//go:generate controller-gen crd:crdVersions=v1 paths=./apis/... output:crd:artifacts:config=apis/crds
