// Package aws is a fake of AWS: an [http.Handler] with the calls of Amazon EC2 (version 2016-11-15) and of the Security Token
// Service (version 2011-06-15) that Drover's provider makes, and with Options.Others those of Cluster API's provider. It keeps its state in memory. It verifies the signature of each
// request (Signature Version 4). The package awsmodel judges its requests and responses by Amazon's own models.
//
// It is as unkind as EC2: an instance is not shown for some time after it was accepted, it may be terminated before it runs,
// it is shown for an hour after its end, and each action has its own rate limit. The source of each behavior:
//
//	subject                              source
//	parameters, responses, state reasons models/apis/ec2/2016-11-15 of github.com/aws/aws-sdk-go: api-2.json, docs-2.json
//	codes and messages of errors         Amazon EC2 API Reference, "Error codes for the Amazon EC2 API"
//	ClientToken, IdempotentParameterMismatch
//	                                     Amazon EC2 Developer Guide, "Ensuring idempotency in Amazon EC2 API requests"
//	rate limits                          Amazon EC2 Developer Guide, "Request throttling for the Amazon EC2 API"
//	InvalidInstanceID.NotFound of a new instance
//	                                     Amazon EC2 Developer Guide, "Eventual consistency in the Amazon EC2 API"
//	shutting-down, terminated            Amazon EC2 User Guide, "Instance lifecycle", "Troubleshoot instance launch issues"
//	status of spot requests              Amazon EC2 User Guide, "Spot Instance request status"
//	errors of the Security Token Service AWS Security Token Service API Reference, "Common Errors"
//
// Messages of validations without an example in the documentation are the fake's own.
package aws
