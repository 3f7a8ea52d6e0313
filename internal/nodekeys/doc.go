// Package nodekeys decides which labels, annotations and taints of a Node are Drover's: which it gets, keeps and loses, and what
// is recorded of that in the status of the Machine.
//
// A key that already has the desired value is left to the client that set it. When Drover removes a key whose former value it
// replaced, it restores that value. Only Drover sets its own keys, such as the label by which a Node is known as the Machine's: these need no record. Keys of
// kubernetes.io and k8s.io are never removed or restored by a record, which can be forged.
//
// The package is pure. settlement.go decides on the keys of one kind, record.go has the record, and change.go makes a patch of both.
package nodekeys
