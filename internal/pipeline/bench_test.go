package pipeline

import (
	"context"
	"fmt"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"
)

// state like that of a Machine: a composite and four composed resources, 24 KiB as protobuf.
func machineState(b *testing.B) *fnv1.State {
	b.Helper()
	object := func(name string) *fnv1.Resource {
		spec := map[string]any{}
		for i := range 60 {
			spec[fmt.Sprintf("field%d", i)] = map[string]any{"name": name, "value": "0123456789abcdef", "number": i}
		}
		return &fnv1.Resource{Resource: mustStruct(b, map[string]any{
			"apiVersion": "example.org/v1", "kind": "Server", "metadata": map[string]any{"name": name, "uid": name}, "spec": spec,
		})}
	}
	s := &fnv1.State{Composite: object("machine"), Resources: map[string]*fnv1.Resource{}}
	for i := range 4 {
		s.Resources[fmt.Sprint(i)] = object(fmt.Sprint(i))
	}
	return s
}

func benchmarkRun(b *testing.B, o Options) {
	b.Helper()
	cluster := &fakeCluster{configMaps: map[string]string{"a": "1"}}
	o.Resources, o.Schemas = cluster, cluster
	r, in := New(o), Input{Observed: machineState(b)}
	b.ReportAllocs()
	for b.Loop() {
		cluster.fetches = nil
		if _, err := r.Run(b.Context(), stepsNamed("fn", "fn2", "fn3"), in); err != nil {
			b.Fatal(err)
		}
	}
}

// echo returns its request as the response, and requires the resources that most steps require.
func echo(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	rsp.Desired.Resources = req.GetObserved().GetResources()
	rsp.Requirements = &fnv1.Requirements{Resources: require("a").GetResources(), Schemas: requireSchema("Server").GetSchemas()}
	response.SetContextKey(rsp, "k", structpb.NewStringValue("v"))
	return rsp, nil
}

func BenchmarkThreeStepsInProcess(b *testing.B) {
	benchmarkRun(b, Options{Local: func(Step) (RunFunc, bool) { return echo, true }})
}

type echoServer struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
}

func (echoServer) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return echo(ctx, req)
}

func BenchmarkThreeStepsByGRPC(b *testing.B) {
	a, dir := newAuthority(b), b.TempDir()
	a.writeClient(b, dir)
	endpoint, _ := serve(b, a, func(g *grpc.Server) { fnv1.RegisterFunctionRunnerServiceServer(g, echoServer{}) })
	f, _ := newFunctions(b, dir, functionRevision("fn", "Active", endpoint, 1), functionRevision("fn2", "Active", endpoint, 1), functionRevision("fn3", "Active", endpoint, 1))
	benchmarkRun(b, Options{Functions: f})
}

func BenchmarkTag(b *testing.B) {
	req := &fnv1.RunFunctionRequest{Observed: machineState(b)}
	b.ReportAllocs()
	for b.Loop() {
		tagOf(req)
	}
}
