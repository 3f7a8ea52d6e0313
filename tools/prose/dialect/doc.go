// Package dialect measures how far texts are from the language of the field.
//
// A measure counts one habit that hides the subject of a sentence, such as an object that talks, an
// unnamed actor, or a clause in place of a noun; or a private word for a standard term. The rate is
// per thousand lines: of comments in Go files, of prose in Markdown. Code, strings, code spans and
// links do not count.
//
// The package does no I/O. The command prose reads the files.
package dialect
