// Package docs runs the commands of the documentation: each line of README.md, CONTRIBUTING.md,
// docs and the READMEs of examples that begins with kubectl, crossplane or make.
//
// A block of commands runs as it stands on the page, in a shell, on a control plane with the
// objects that the pages name. Commands of kubectl that change objects are server-side dry runs,
// and those of make only resolve their targets. The installation page is different: its blocks
// take effect, in their order, on a control plane without Drover.
//
// The tables of docs/on-call.md have a command in each row. Their commands run like blocks.
//
// A comment before a block marks one that cannot run this way:
//
//	<!-- commands: run by TestX -->       a test of this name runs them
//	<!-- commands: not run: REASON -->    nothing runs them
package docs
