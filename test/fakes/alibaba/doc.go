// Package alibaba is a fake of Alibaba Cloud: an [http.Handler] with the calls of ECS (version 2014-05-26) and of
// the Security Token Service (version 2015-04-01) that Drover's provider makes. It keeps its state in memory. It
// verifies the signature of each request (ACS3-HMAC-SHA256), its time and its nonce.
//
// Parameters and responses follow the API descriptions (https://api.alibabacloud.com/document/Ecs/2014-05-26/CALL,
// which the models of github.com/alibabacloud-go/ecs-20140526/v7 are generated from). Codes and messages of errors
// follow the error center (https://api.alibabacloud.com/errorCenter, product Ecs) and the pages below:
//
//	subject                              source
//	canonical request, ACS3-HMAC-SHA256  https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature
//	InvalidAccessKeyId.NotFound, SignatureDoesNotMatch, SignatureNonceUsed, InvalidTimeStamp.Expired, Throttling.User
//	                                     https://www.alibabacloud.com/help/en/ecs/developer-reference/common-error-codes
//	ClientToken, IdempotentParameterMismatch
//	                                     https://www.alibabacloud.com/help/en/ecs/developer-reference/how-to-ensure-idempotence
//	Forbidden.RAM of Describe calls      https://www.alibabacloud.com/help/en/ecs/announcement-of-changes-to-the-authentication-mechanism-for-alibaba-cloud-ecs-query-type-apis
//	OperationLocks of spot instances     https://www.alibabacloud.com/help/en/ecs/user-guide/query-the-interruption-events-of-preemptible-instances
//	RunInstances, StartInstance, RebootInstance, DeleteInstance, DescribeInstances, DescribeInstanceAttribute, DescribeDisks,
//	DescribeImages, DescribeInstanceTypes, GetInstanceConsoleOutput
//	                                     https://api.alibabacloud.com/document/Ecs/2014-05-26/RunInstances, and so on
//	GetCallerIdentity, AssumeRole        https://api.alibabacloud.com/document/Sts/2015-04-01/AssumeRole, and so on
//
// The codes MissingAuthorization, InvalidAmount.NotSupported, InvalidParameter.Mismatch, InvalidTagCount and
// InvalidNextToken, and the messages of some validations of RunInstances, are the fake's own: no page with them was
// found.
package alibaba
