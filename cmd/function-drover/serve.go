package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	function "github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	grpcprometheus "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// grace is how long calls and streams may continue after the signal to end. A call takes
// milliseconds.
const grace = 10 * time.Second

// serve replaces the SDK's Serve, which cannot be stopped without cutting off running calls.
func (c *cli) serve(ctx context.Context, fn fnv1.FunctionRunnerServiceServer) error {
	creds, err := c.credentials()
	if err != nil {
		return err
	}
	steps := newStepMetrics()
	metrics := grpcprometheus.NewServerMetrics(grpcprometheus.WithServerHandlingTimeHistogram())
	srv := grpc.NewServer(
		grpc.Creds(creds),
		grpc.MaxRecvMsgSize(c.MaxRecvMessageSize<<20),
		grpc.StatsHandler(steps),
		grpc.ChainUnaryInterceptor(metrics.UnaryServerInterceptor()),
	)
	healthy := health.NewServer()
	fnv1.RegisterFunctionRunnerServiceServer(srv, fn)
	v1beta1.RegisterFunctionRunnerServiceServer(srv, function.ServeBeta(fn))
	healthgrpc.RegisterHealthServer(srv, healthy)
	reflection.Register(srv)
	metrics.InitializeMetrics(srv)

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("cannot listen at --address %q: %w", c.Address, err)
	}
	failed := make(chan error, 2)
	go func() { failed <- srv.Serve(listener) }()
	defer srv.Stop()

	if c.MetricsAddress != "" {
		m := metricsServer(c.MetricsAddress, metrics, steps)
		go func() { failed <- serveMetrics(m) }()
		defer func() { _ = m.Close() }()
	}

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		healthy.Shutdown()
		defer time.AfterFunc(grace, srv.Stop).Stop()
		srv.GracefulStop()
		return nil
	}
}

func (c *cli) credentials() (credentials.TransportCredentials, error) {
	o := &function.ServeOptions{}
	for _, apply := range []function.ServeOption{function.MTLSCertificates(c.TLSCertsDir), function.Insecure(c.Insecure)} {
		if err := apply(o); err != nil {
			return nil, fmt.Errorf("cannot use the certificates in --tls-certs-dir %q: %w", c.TLSCertsDir, err)
		}
	}
	if o.Credentials == nil {
		return nil, errors.New("one of --tls-certs-dir and --insecure is needed")
	}
	return o.Credentials, nil
}

func metricsServer(address string, metrics ...prometheus.Collector) *http.Server {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics...)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 30 * time.Second}
}

func serveMetrics(s *http.Server) error {
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve metrics at --metrics-address %q: %w", s.Addr, err)
	}
	return nil
}
