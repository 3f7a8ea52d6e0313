// Package state stores the state that an instance of the local control plane needs after a restart:
// its ports, which kubeconfigs, Nodes and packages refer to.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"slices"
)

// Ports are chosen below Linux's ephemeral range (32768 and up), so that no outgoing connection
// takes a stored port while the instance is down.
const (
	minPort = 20000
	maxPort = 32000
)

// State is the stored state of an instance, in JSON.
type State struct {
	Ports map[string]int `json:"ports"`
}

// Load reads a State. A missing file is an empty State.
func Load(path string) (State, error) {
	s := State{Ports: map[string]int{}}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	return s, nil
}

// Save writes a State.
func (s State) Save(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// A Want is a named port that an instance needs.
type Want struct {
	Name string
	// Fixed ports are written into objects that survive a restart. If another process holds a fixed
	// port, Choose returns an error and does not choose another port.
	Fixed bool
}

// Choose adds a port for every Want that has none in remembered. free reports whether no process
// listens on a port, and next proposes a port.
func Choose(remembered map[string]int, wants []Want, free func(port int) bool, next func() int) (map[string]int, error) {
	chosen := map[string]int{}
	for name, port := range remembered {
		chosen[name] = port
	}
	taken := func(port int) bool {
		for _, p := range chosen {
			if p == port {
				return true
			}
		}
		return false
	}
	for _, w := range wants {
		port, ok := chosen[w.Name]
		if ok && free(port) {
			continue
		}
		if ok && w.Fixed {
			return nil, fmt.Errorf("port %d, which %s had before, is in use by another process: stop that process, or start afresh after \"down --purge\"", port, w.Name)
		}
		for range maxPort - minPort {
			port = next()
			if !taken(port) && free(port) {
				ok = true
				break
			}
			ok = false
		}
		if !ok {
			return nil, fmt.Errorf("no free port between %d and %d for %s", minPort, maxPort, w.Name)
		}
		chosen[w.Name] = port
	}
	return chosen, nil
}

// Random returns a random port as a proposal.
func Random() int { return minPort + rand.IntN(maxPort-minPort) } //nolint:gosec // A port is no secret.

// Free reports whether a port can be bound, on loopback and on all addresses.
func Free(port int) bool {
	return !slices.ContainsFunc([]string{"127.0.0.1", ""}, func(host string) bool {
		l, err := net.Listen("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			return true
		}
		return l.Close() != nil
	})
}
