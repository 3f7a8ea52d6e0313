module github.com/drover-dev/drover/tools/aws

go 1.26

require github.com/aws/aws-sdk-go v1.55.8
