// Command function-tagger is the function of a user: its step tags the VM of each Machine.
package main

import (
	"context"
	"log"
	"os"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"
)

// tagger sets the tags of its input on the VM that the steps before it desire.
type tagger struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction tags the VM, if there is one.
func (tagger) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	vm, ok := rsp.GetDesired().GetResources()["vm"]
	if !ok {
		return rsp, nil
	}
	forProvider := vm.GetResource().GetFields()["spec"].GetStructValue().GetFields()["forProvider"].GetStructValue()
	tags := forProvider.GetFields()["tags"].GetStructValue().AsMap()
	for k, v := range req.GetInput().GetFields()["tags"].GetStructValue().AsMap() {
		tags[k] = v
	}
	tagged, err := structpb.NewStruct(tags)
	if err != nil {
		return nil, err
	}
	forProvider.Fields["tags"] = structpb.NewStructValue(tagged)
	response.Normal(rsp, "Tagged the VM")
	return rsp, nil
}

func main() {
	if err := function.Serve(tagger{},
		function.Listen("tcp", os.Getenv("ADDRESS")),
		function.MTLSCertificates(os.Getenv("TLS_SERVER_CERTS_DIR")),
		function.WithMetricsServer(os.Getenv("METRICS_ADDRESS"))); err != nil {
		log.Fatal(err)
	}
}
