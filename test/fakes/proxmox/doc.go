// Package proxmox is a fake of a cluster of Proxmox VE: an [http.Handler] and an [http.RoundTripper] with
// the part of /api2/json that Drover's provider calls. It keeps its state in memory. Changes are made by
// tasks, which take time and can fail. Like pveproxy it has the text of an error in the status line, and
// responds without a body for an unreachable node.
//
// Calls, parameters and responses follow the API viewer (https://pve.proxmox.com/pve-docs/api-viewer/).
// Texts of errors follow the sources:
//
//	call                                            source
//	PVEAPIToken, 401                                pve-access-control: src/PVE/AccessControl.pm; pve-http-server: src/PVE/APIServer/AnyEvent.pm
//	403 "Permission check failed"                   pve-access-control: src/PVE/RPCEnvironment.pm
//	400 "Parameter verification failed."            pve-common: src/PVE/RESTHandler.pm
//	595, 596                                        pve-http-server: src/PVE/APIServer/AnyEvent.pm (pseudo statuses of AnyEvent::HTTP)
//	GET /cluster/status, /cluster/resources, nextid pve-manager: PVE/API2/Cluster.pm
//	"VM 100 already exists on node"                 pve-cluster: src/PVE/Cluster.pm (check_vmid_unused)
//	"Configuration file ... does not exist"         pve-guest-common: src/PVE/AbstractConfig.pm (load_config)
//	"VM is locked (clone)", "can't lock file"       pve-guest-common: src/PVE/AbstractConfig.pm; pve-common: src/PVE/Tools.pm
//	clone, config, resize, status, agent, DELETE    qemu-server: src/PVE/API2/Qemu.pm, src/PVE/API2/Qemu/Agent.pm
//	what the tasks qmreboot and qmreset do          qemu-server: src/PVE/QemuServer.pm; the start after qmreboot: src/PVE/CLI/qm.pm (cleanup)
//	upload, content                                 pve-storage: src/PVE/API2/Storage/Status.pm, Content.pm
//	"storage 'x' is not available on node"          pve-storage: src/PVE/Storage.pm (storage_check_enabled)
//	GET /nodes/{node}/tasks/{upid}/status           pve-manager: PVE/API2/Tasks.pm; UPIDs: pve-common: src/PVE/Tools.pm
package proxmox
