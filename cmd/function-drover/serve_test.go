package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// slow is a function that answers only after the test permits it.
type slow struct {
	fnv1.UnimplementedFunctionRunnerServiceServer
	called, goOn chan struct{}
}

func (s *slow) RunFunction(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	close(s.called)
	<-s.goOn
	return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: "done"}}, nil
}

func TestServeFinishesTheCallsThatRun(t *testing.T) {
	fn := &slow{called: make(chan struct{}), goOn: make(chan struct{})}
	c := &cli{Address: free(t), Insecure: true, MaxRecvMessageSize: 64}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.serve(ctx, fn) }()

	conn, err := grpc.NewClient(c.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	answered := make(chan error, 1)
	go func() {
		_, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(t.Context(), &fnv1.RunFunctionRequest{}, grpc.WaitForReady(true))
		answered <- err
	}()

	<-fn.called
	stop()
	select {
	case err := <-ended:
		t.Fatalf("ended while a call was running: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(fn.goOn)
	if err := <-answered; err != nil {
		t.Errorf("the call that was running got %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()

	cases := map[string]struct {
		cli  cli
		want string
	}{
		"NoCredentials":       {cli: cli{Address: "127.0.0.1:0"}, want: "--tls-certs-dir"},
		"NoCertificates":      {cli: cli{Address: "127.0.0.1:0", TLSCertsDir: "/nowhere"}, want: `--tls-certs-dir "/nowhere"`},
		"AddressTaken":        {cli: cli{Address: taken.Addr().String(), Insecure: true}, want: "--address"},
		"MetricsAddressTaken": {cli: cli{Address: "127.0.0.1:0", Insecure: true, MetricsAddress: taken.Addr().String()}, want: "--metrics-address"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.cli.serve(t.Context(), fnv1.UnimplementedFunctionRunnerServiceServer{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to name %s", err, tc.want)
			}
		})
	}
}

func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
