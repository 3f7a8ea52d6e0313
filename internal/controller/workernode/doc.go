// Package workernode keeps a WorkerNode in step with its Node.
//
// The Node comes by itself, when the VM's kubelet registers it. So to the managed
// reconciler the external resource always exists, and is up to date or not: Create
// is never called, and its annotations are never written. Changes of Nodes come
// through a watch; the poll interval is a safety net.
//
// Deletion drains the Node in passes that block nobody, and then deletes it. It
// ends by the drain's timeout, whatever the target cluster does.
package workernode
