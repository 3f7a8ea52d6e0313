// Package docs runs the commands of the documentation: each line of README.md, CONTRIBUTING.md,
// docs and the READMEs of examples that begins with kubectl, crossplane or make.
//
// A block of commands runs as it stands on the page, in a shell, on a control plane that has the
// objects which the pages name. Commands of kubectl that change something are dry runs of the API
// server, and those of make only resolve their targets. The page of the installation is different:
// its blocks run for real, in their order, on a control plane without Drover.
//
// The tables of docs/on-call.md have a command in each row. They run as blocks do.
//
// A comment before a block marks what cannot run so:
//
//	<!-- commands: run by TestX -->       a test of this name runs them
//	<!-- commands: not run: REASON -->    nothing runs them
package docs
