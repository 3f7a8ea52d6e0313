// Package pages checks the Markdown of the repository without running anything: links lead to files and
// headings that exist, and diagrams are of a form that Mermaid reads.
package pages
