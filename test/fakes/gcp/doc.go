// Package gcp is a fake of one project of Compute Engine: an [http.Handler] with the calls of the Compute API that
// provider-gcp makes, and the tokens of gcptest. It keeps its state in memory.
//
// Each request and each answer is held against Google's description of the API by the package gcpmodel: a difference is
// reported to Options.Report. Aggregated lists, filters, partial responses, permissions and the rate limit are those of
// gcptest.
//
// The rest follows these pages:
//
//	subject                                    source
//	life of an instance                        https://cloud.google.com/compute/docs/instances/instance-lifecycle
//	operations, and errors in them             https://cloud.google.com/compute/docs/api/how-tos/api-requests-responses#handling_api_responses
//	ZONE_RESOURCE_POOL_EXHAUSTED, QUOTA_EXCEEDED
//	                                           https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-vm-creation
//	requestId                                  the parameter in the description
//	preemption, instanceTerminationAction      https://cloud.google.com/compute/docs/instances/spot#preemption
//	compute.instances.preempted                https://cloud.google.com/compute/docs/instances/create-use-spot#detect_preemption
//	alreadyExists, resourceNotReady, notFound  https://cloud.google.com/compute/docs/api/how-tos/errors
//
// It is unkind where the API may be: an instance is listed some time after its creation was accepted, an operation
// takes its time, an instance that is being created or deleted is not ready for a deletion. The messages of errors about
// fields are the fake's own, except those quoted on the pages.
package gcp
