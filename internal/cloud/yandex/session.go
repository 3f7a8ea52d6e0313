package yandex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/retry"
	"github.com/yandex-cloud/go-genproto/yandex/cloud/endpoint"
	iam "github.com/yandex-cloud/go-genproto/yandex/cloud/iam/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// attempts of a call that is throttled or finds the service unavailable, with a pause that
	// begins with firstPause and doubles up to longestPause: half a minute altogether.
	attempts     = 6
	firstPause   = time.Second
	longestPause = 15 * time.Second
	// maxMessage is the length to which an error of the API is shortened.
	maxMessage = 256
)

// IDs of services in the list of endpoints.
const (
	serviceIAM     = "iam"
	serviceCompute = "compute"
	serviceVPC     = "vpc"
)

// A session has the connections to the services for one list. A Lister is never closed, so it keeps
// no connections.
type session struct {
	lister    *lister
	addresses map[string]string
	open      []*grpc.ClientConn
}

// start starts a session: it gets the addresses of the services, and an IAM token if there is none.
func (l *lister) start(ctx context.Context) (_ *session, err error) {
	s := &session{lister: l, addresses: map[string]string{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	conn, err := s.dial(l.endpoint)
	if err != nil {
		return nil, err
	}
	known, err := endpoint.NewApiEndpointServiceClient(conn).List(ctx, &endpoint.ListApiEndpointsRequest{})
	if err != nil {
		return nil, describe("cannot list the endpoints of "+l.endpoint, err)
	}
	for _, e := range known.GetEndpoints() {
		s.addresses[e.GetId()] = e.GetAddress()
	}
	return s, s.authenticate(ctx)
}

func (s *session) close() {
	for _, c := range s.open {
		_ = c.Close()
	}
}

func (s *session) dial(address string) (*grpc.ClientConn, error) {
	l := s.lister
	c, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(credentials.NewTLS(l.tls.Clone())),
		grpc.WithUserAgent("drover"),
		grpc.WithUnaryInterceptor(retry.UnaryClientInterceptor(
			retry.WithMax(attempts),
			retry.WithBackoff(retry.BackoffExponentialWithJitterBounded(l.pause, 0.1, longestPause)),
			retry.WithCodes(codes.ResourceExhausted, codes.Unavailable),
		)))
	if err != nil {
		return nil, fmt.Errorf("endpoint: invalid value %q: must be like %s: %w", address, defaultEndpoint, err)
	}
	s.open = append(s.open, c)
	return c, nil
}

// service returns a connection to a service that the endpoint names.
func (s *session) service(id string) (*grpc.ClientConn, error) {
	address := s.addresses[id]
	if address == "" {
		return nil, fmt.Errorf("endpoint: %s has no service %q", s.lister.endpoint, id)
	}
	return s.dial(address)
}

func (s *session) authenticate(ctx context.Context) error {
	l := s.lister
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.token.isUsable(now) {
		return nil
	}
	var err error
	if l.key == nil {
		l.token, err = ofVM(ctx, l.metadata, l.metadataURL, now)
		return err
	}
	conn, err := s.service(serviceIAM)
	if err != nil {
		return err
	}
	l.token, err = l.key.exchange(ctx, iam.NewIamTokenServiceClient(conn), now)
	return err
}

// authorized returns the context of a call that needs the IAM token.
func (s *session) authorized(ctx context.Context) context.Context {
	s.lister.mu.Lock()
	defer s.lister.mu.Unlock()
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.lister.token.value)
}

// forget removes an IAM token that was refused, so that the next list gets another one.
func (l *lister) forget(err error) error {
	if status.Code(err) == codes.Unauthenticated {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.token = iamToken{}
	}
	return err
}

// describe returns an error of a call with its class in front.
func describe(what string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", what, err)
	}
	s := status.Convert(err)
	class := map[codes.Code]fn.ErrorCode{
		codes.Unauthenticated: fn.ErrorPermissionDenied, codes.PermissionDenied: fn.ErrorPermissionDenied, codes.ResourceExhausted: fn.ErrorThrottled,
	}[s.Code()]
	return &inventory.CallError{Class: class, Text: fmt.Sprintf("%s: %s: %s", what, s.Code(), text.Shorten(s.Message(), maxMessage))}
}
