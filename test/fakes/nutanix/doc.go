// Package nutanix is a fake of a Prism Central: an [http.Handler] with the part of version 4.1 of its APIs that
// Drover's provider calls, and the list of projects of version 3. It keeps its state in memory. It checks the
// password of each call, pages lists, requires the ETag of a VM for a change, returns the task of an earlier
// request with the same NTNX-Request-Id, and changes VMs by tasks, which take time and can fail.
//
// Paths, parameters, objects and enumerations follow Nutanix's API descriptions, of which it generates its Go
// clients (github.com/nutanix/ntnx-api-golang-clients, tag v4.1.1 of each). Errors follow responses that users of
// Nutanix's own clients published:
//
//	call, error                                     source
//	GET, POST, DELETE /vmm/v4.1/ahv/config/vms      vmm-go-client: api/vm_api.go, models/vmm/v4/ahv/config
//	GET, PUT .../vms/{extId}/disks/{extId}          vmm-go-client: api/vm_api.go; terraform-provider-nutanix: nutanix/services/vmmv2
//	POST .../vms/{extId}/$actions/power-on          vmm-go-client: api/vm_api.go
//	.../$actions/reboot, reset, power-cycle         vmm-go-client: api/vm_api.go; If-Match: nutanix.ansible: ntnx_vms_power_actions_v2.py
//	GET /vmm/v4.1/content/images                    vmm-go-client: api/images_api.go, models/vmm/v4/content
//	GET /prism/v4.1/config/tasks, categories        prism-go-client: api/tasks_api.go, api/categories_api.go
//	GET /clustermgmt/v4.1/config/clusters, ...      clustermgmt-go-client: api/clusters_api.go, api/storage_containers_api.go
//	GET /networking/v4.1/config/subnets             networking-go-client: api/subnets_api.go
//	POST /nutanix/v3/projects/list                  nutanix-cloud-native/prism-go-client v0.6.0: v3/v3_service.go
//	$page from 0, $limit from 1 to 100, 50          terraform-provider-nutanix: website/docs/d/virtual_machines_v2
//	NTNX-Request-Id is an idempotence token         parameter NTNX-Request-Id in the API descriptions
//	ErrorResponse, SchemaValidationError            vmm-go-client: models/vmm/v4/error
//	401 AUTHENTICATION_REQUIRED, 403 ACCESS_DENIED  terraform-provider-nutanix issue 93
//	404 VMM-30100 VM_NOT_FOUND                      nutanix.ansible pull request 1147
//	412 VMM-30303 VM_ETAG_MISMATCH                  terraform-provider-nutanix: nutanix/services/vmmv2, issue 1089
//	428 PLAT-10004 MISSING_ETAG_HEADER              terraform-provider-nutanix pull request 1231
//	task: VMM-30128 INSUFFICIENT_RESOURCES_ERROR    nutanix.ansible pull request 1143
//	task: "due to an invalid argument with key"     terraform-provider-nutanix issue 1214
//	a disk of an image has the size of the image    nutanix.ansible: plugins/modules/ntnx_vms_v2.py
//	an image and a storage container of one disk    terraform-provider-nutanix issue 891
//	task IDs such as ZXJnb24=:9b77f082-...          terraform-provider-nutanix issue 1214
//	a VM that was just created is not readable yet  nutanix.ansible: retries of VM_NOT_FOUND
//
// The wording of 429 is that of HTTP, because no limit of Prism Central is published. The error of a reboot of a VM
// that does not run is not published either: the clients of Nutanix do not request one.
package nutanix
