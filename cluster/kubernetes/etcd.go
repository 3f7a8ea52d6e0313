package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

const etcdStartTimeout = 10 * time.Minute

// startEtcd runs a single member that only listens on a unix socket, so that its data is as private
// as its directory.
func startEtcd(l layout) (*embed.Etcd, error) {
	// A socket that a killed process left cannot be bound again.
	for _, s := range []string{l.etcdSocket(), l.peerSocket()} {
		if err := os.Remove(s); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	client := url.URL{Scheme: "unix", Path: l.etcdSocket()}
	peer := url.URL{Scheme: "unix", Path: l.peerSocket()}
	// The advertised address must have the form host:port. No client dials it: there is one member,
	// and the API server gets the path of the socket.
	advertised := url.URL{Scheme: "http", Host: "localhost:0"}

	c := embed.NewConfig()
	c.Name = "default"
	c.Dir = l.etcdData()
	c.ListenClientUrls = []url.URL{client}
	c.AdvertiseClientUrls = []url.URL{advertised}
	c.ListenPeerUrls = []url.URL{peer}
	c.AdvertisePeerUrls = []url.URL{advertised}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel = "warn"
	// Durability against a crash of the computer is not worth an fsync per write here.
	c.UnsafeNoFsync = true
	// The default of NewConfig is 0, which logs every request.
	c.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration

	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-time.After(etcdStartTimeout):
		e.Server.HardStop()
		return nil, fmt.Errorf("start etcd: not ready after %s", etcdStartTimeout)
	}
}
