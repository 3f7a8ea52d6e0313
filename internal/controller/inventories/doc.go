// Package inventories has the controllers of provider-inventory: one for the inventories of each
// cloud whose VMs are resources of another provider. A controller starts when its CRD is active,
// so a cloud that is not used costs nothing.
//
// To add a cloud:
//
//  1. Write the entry apis/<name>/cloud.yaml with the frame Published, and run make generate: it also writes the rights.
//  2. Write internal/cloud/<name>, with New(ctx, Options) (inventory.Lister, error).
//  3. Add the call of New to the table in clouds.go.
//  4. Add apis/machine/compositions/orphancollector-<name>.yaml, and the key inventory to the Composition of Machines.
package inventories
