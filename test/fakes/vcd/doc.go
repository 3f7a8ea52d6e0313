// Package vcd is a fake of VMware Cloud Director: an [http.Handler] with the part of version 37.0 of its API that
// Drover's provider calls. It keeps its state in memory. It begins sessions for passwords and API tokens, requires the
// access token and the version in each call, pages queries, refuses changes of a VM that a task changes, limits the
// operations of a user, and changes VMs by tasks, which take time and can fail.
//
// Paths, elements and statuses follow VMware's description of the API
// (https://developer.broadcom.com/xapis/vmware-cloud-director-api/latest/) and its Go client
// (github.com/vmware/go-vcloud-director/v2, v2.26.1). Errors follow responses that users published:
//
//	call, error                                       source
//	POST /cloudapi/1.0.0/sessions, access token       go-vcloud-director: govcd/api_vcd.go (vcdCloudApiAuthorize)
//	POST /oauth/tenant/{org}/token                    go-vcloud-director: govcd/api_token.go
//	400 invalid_grant for a wrong API token           terraform-provider-vcd issue 905
//	service accounts: a new token with each use       go-vcloud-director: govcd/api_token.go (SetApiTokenFromFile); cluster-api-provider-cloud-director issue 649
//	POST /vdc/{id}/action/instantiateVmTemplate       operation POST-InstantiateVmTemplate, type InstantiateVmTemplateParams; go-vcloud-director: govcd/vdc.go (CreateStandaloneVMFromTemplateAsync, by the link of the VDC)
//	the owner of its task is the new vApp             operation POST-CreateVm; go-vcloud-director: govcd/vdc.go (getVmFromTask)
//	DELETE of a standalone VM deletes its vApp        go-vcloud-director: govcd/vm_test.go (Test_CreateStandaloneVMFromTemplate)
//	POST /vApp/{id}/action/reconfigureVm, undeploy    go-vcloud-director: govcd/vm.go
//	POST /vApp/{id}/power/action/powerOn              go-vcloud-director: govcd/vm.go
//	POST /vApp/{id}/power/action/reboot, reset        go-vcloud-director: govcd/vapp.go; operations POST-RebootVApp, POST-ResetVApp
//	400 "... since VM ... is not powered on"          ansible-module-vcloud-director issue 31
//	"... because VMware Tools is not running ..."     vcd-cli pull request 172: the task of the reboot fails
//	POST /vApp/{id}/disk/action/detach                go-vcloud-director: govcd/vm.go (attachOrDetachDisk)
//	PUT /vApp/{id}/productSections                    go-vcloud-director: govcd/productsection.go
//	POST /vApp/{id}/metadata merges                   go-vcloud-director: govcd/metadata_v2.go (mergeAllMetadata)
//	GET /query, types, fields, metadata, pageSize 128 type QueryResultRecords, VMRecord; go-vcloud-director: govcd/query_metadata.go
//	GET /cloudapi/1.0.0/vdcs/{id}/computePolicies     go-vcloud-director: types/v56/constants.go (OpenApiEndpointVdcAssignedComputePolicies)
//	statuses of VMs                                   go-vcloud-director: types/v56/types.go (VAppStatuses)
//	statuses of tasks                                 go-vcloud-director: govcd/task.go
//	403 ACCESS_TO_RESOURCE_IS_FORBIDDEN for no entity go-vcloud-director: govcd/roles_test.go; jclouds: VCloudDirectorErrorHandler
//	400 BUSY_ENTITY                                   go-vcloud-director issue 616
//	400 OPERATION_LIMITS_EXCEEDED                     jclouds: vcloud-director, ErrorHandlerTest
//	the placement engine looks for a host and space   VMware Cloud Director 10.4, Service Provider Admin Portal Guide: Placement Engine
//	400 "will exceed the VDC's storage quota"         cloud-director-named-disk-csi-driver: pkg/vcdcsiclient
//	the ID of the request before each message         terraform-provider-vcd issues 649, 976
//
// No public source has the wording of 429, which is that of HTTP, and of a placement that fails, nor the name of the
// operation vappReset and the minor code of a reboot that fails. A vApp that stays after a
// failed creation is an assumption: the status FAILED_CREATION suggests it.
package vcd
