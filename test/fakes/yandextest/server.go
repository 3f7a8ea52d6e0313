// Package yandextest is a fake of the calls of Yandex Cloud's API that authenticate a service
// account and list Instances, disks and addresses: a gRPC server with TLS. A function provides
// these, so that a test or a simulator of the cloud keeps the state.
//
// Sources of the formats: the protocol buffers of github.com/yandex-cloud/cloudapi
// (yandex/cloud/endpoint/api_endpoint_service.proto, iam/v1/iam_token_service.proto,
// compute/v1/instance_service.proto and disk_service.proto, vpc/v1/address_service.proto), by
// whose generated code they are served; for the signed token
// https://yandex.cloud/docs/iam/operations/iam-token/create-for-sa; for the texts of errors
// https://yandex.cloud/docs/api-design-guide/concepts/errors and the issues yandex-cloud/dotnet-sdk#34,
// yandex-cloud/go-sdk#21, yandex-cloud/python-sdk#9 and GoogleCloudPlatform/terraformer#565.
package yandextest

import (
	"context"
	"crypto/rsa"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"sync"
	"time"

	compute "github.com/yandex-cloud/go-genproto/yandex/cloud/compute/v1"
	"github.com/yandex-cloud/go-genproto/yandex/cloud/endpoint"
	iam "github.com/yandex-cloud/go-genproto/yandex/cloud/iam/v1"
	vpc "github.com/yandex-cloud/go-genproto/yandex/cloud/vpc/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/drover-dev/drover/test/fakes"
)

// A Folder has the resources of one folder.
type Folder struct {
	Instances []*compute.Instance
	Disks     []*compute.Disk
	Addresses []*vpc.Address
}

// A Key is an authorized key of a service account.
type Key struct {
	ServiceAccount string
	Public         *rsa.PublicKey
	// Folders that the service account may view.
	Folders []string
}

// Options of a Server.
type Options struct {
	// State returns the resources of a folder. It is called once per list.
	State func(folder string) Folder
	// Keys by their IDs, at the time of each request.
	Keys func() map[string]Key
	// RateLimit is how many lists may be made at once. After each Refill, one more may be made.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A Server is the API. Calls are counted, and broken by faults, under their full names, such
// as /yandex.cloud.compute.v1.InstanceService/List. The Status of a Fault is a gRPC code.
type Server struct {
	fakes.Faults
	fakes.Count
	// Address of the endpoint, and of all services, and the certificate in PEM format that
	// signs theirs.
	Address        string
	CACertificates []byte

	opts Options
	grpc *grpc.Server

	mu     sync.Mutex
	issued map[string]issued
	bucket fakes.Bucket
}

// Start a Server. It must be stopped.
func Start(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	certificate, ca := selfSigned()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, Address: l.Addr().String(), CACertificates: ca, issued: map[string]issued{}}
	s.grpc = grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})),
		grpc.UnaryInterceptor(s.intercept))
	endpoint.RegisterApiEndpointServiceServer(s.grpc, endpoints{server: s})
	iam.RegisterIamTokenServiceServer(s.grpc, tokens{server: s})
	compute.RegisterInstanceServiceServer(s.grpc, instances{server: s})
	compute.RegisterDiskServiceServer(s.grpc, disks{server: s})
	vpc.RegisterAddressServiceServer(s.grpc, addresses{server: s})
	go func() { _ = s.grpc.Serve(l) }()
	return s, nil
}

// Stop the Server.
func (s *Server) Stop() { s.grpc.Stop() }

// selfSigned returns the certificate of httptest, which is for 127.0.0.1.
func selfSigned() (tls.Certificate, []byte) {
	https := httptest.NewTLSServer(nil)
	defer https.Close()
	return https.TLS.Certificates[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw})
}

// open are the calls that need no IAM token.
var open = map[string]bool{
	endpoint.ApiEndpointService_List_FullMethodName: true,
	iam.IamTokenService_Create_FullMethodName:       true,
}

func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	s.Note(info.FullMethod)
	if f := s.Of(info.FullMethod, "", nil); f != nil {
		return nil, status.Error(codes.Code(f.Status), f.Message)
	}
	if open[info.FullMethod] {
		return handler(ctx, req)
	}
	token, err := s.tokenOf(ctx)
	if err != nil {
		return nil, err
	}
	if r, ok := req.(list); ok {
		if err := s.admit(token, r); err != nil {
			return nil, err
		}
	}
	return handler(ctx, req)
}

// A list is a request for a page of the resources of a folder.
type list interface {
	GetFolderId() string
	GetPageSize() int64
	GetPageToken() string
}

// admit checks a list: it must be within the limit of calls, valid, and of a folder that the
// account may view.
func (s *Server) admit(token issued, r list) error {
	if s.opts.RateLimit > 0 {
		s.mu.Lock()
		ok, _, _ := s.bucket.Take(s.opts.Now(), s.opts.RateLimit, s.opts.Refill)
		s.mu.Unlock()
		if !ok {
			return status.Error(codes.ResourceExhausted, "Request rate limit exceeded")
		}
	}
	if r.GetFolderId() == "" {
		return status.Error(codes.InvalidArgument, "Validation failed:\n  - folder_id: Field is required")
	}
	if r.GetPageSize() < 0 || r.GetPageSize() > maxPage {
		return status.Error(codes.InvalidArgument, fmt.Sprintf("Validation failed:\n  - page_size: Value must be in the range of 0 to %d", maxPage))
	}
	if !token.mayView(r.GetFolderId()) {
		return status.Error(codes.PermissionDenied, "Permission denied to folder "+r.GetFolderId())
	}
	return nil
}

type endpoints struct {
	endpoint.UnimplementedApiEndpointServiceServer
	server *Server
}

func (e endpoints) List(context.Context, *endpoint.ListApiEndpointsRequest) (*endpoint.ListApiEndpointsResponse, error) {
	out := &endpoint.ListApiEndpointsResponse{}
	for _, id := range []string{"compute", "endpoint", "iam", "vpc"} {
		out.Endpoints = append(out.Endpoints, &endpoint.ApiEndpoint{Id: id, Address: e.server.Address})
	}
	return out, nil
}
