// Package inventories has the controllers of provider-inventory: one for the inventories of each
// cloud whose VMs are resources of another provider. A controller starts when its CRD is active,
// so a cloud that is not used costs nothing.
//
// To add a cloud:
//
//  1. Add an entry to the table of internal/cloudgen and its name to apis/generate.go and
//     internal/xrdgen, and run go generate in apis.
//  2. Write internal/cloud/<name>, with New(ctx, Options) (inventory.Lister, error).
//  3. Add a row to the table in clouds.go.
//  4. Add apis/machine/compositions/orphancollector-<name>.yaml, the key inventory to the
//     Composition of Machines, and the rights in package/provider-inventory/rbac.yaml.
package inventories
