// Package console reads the text that a VM wrote to its console. The VM's guest writes that
// text, so that it is neither trusted nor bounded: [Excerpt] makes it safe to be shown in a
// status, and what [LastStep] and [Refusal] find in an excerpt informs users, and decides nothing.
package console
