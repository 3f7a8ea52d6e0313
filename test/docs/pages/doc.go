// Package pages checks the Markdown of the repository without running its commands: links lead to
// files and headings that exist, and Mermaid can parse the diagrams.
package pages
