// Package console reads the console output of a VM. The guest of the VM writes it, so that it is neither
// trusted nor bounded. [Excerpt] makes it safe for a status. The results of [LastStep] and [Refusal] inform
// users, and no decision depends on them.
package console
