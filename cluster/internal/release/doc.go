// Package release creates a release of Drover from the binaries of all architectures, and publishes
// it.
//
// A release is a folder. It depends only on the commit, the Go version and the key, so that users
// can reproduce and compare it:
//
//	packages/NAME/                     the package for all architectures, its SBOM and its signatures, an OCI image layout
//	packages/demo/                     the image of the demo for all architectures
//	packages/drover-karpenter/         the image of drover-karpenter for all architectures
//	packages/release/                  the files below, but the last three, as an OCI artifact
//	NAME-VERSION.spdx.json             the SBOM of a package
//	drover-VERSION-manifests.tar.gz    rights, runtime configuration, policies and examples for the registry of the release
//	kubectl-drover-VERSION-OS-ARCH.tar.gz, drover.yaml    kubectl drover for each platform, and its manifest for krew
//	terraform/                         the Terraform provider for each platform, in the layout of a mirror of providers
//	drover-VERSION-sources.tar.gz      the sources of all modules whose license requires to offer them
//	digests.txt                        the digest of each package
//	checksums.txt                      the SHA-256 of every file above
//	checksums.txt.sig, cosign.pub      the signature of checksums.txt, and the key that verifies all signatures
package release
