package conformance

import (
	"fmt"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/digitalocean/godo"

	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/fakes/digitaloceantest"
)

// startDigitalOcean starts a fake of the API, with a token that is allowed the lists of an
// inventory.
func startDigitalOcean(t *testing.T, s *simulated, fleet string) fakeAPI {
	t.Helper()
	token := "dop_v1_" + fleet
	server := httptest.NewServer(digitaloceantest.New(digitaloceantest.Options{
		State: func() digitaloceantest.Account { return digitaloceantest.Account{Droplets: droplets(s, fleet)} },
		Tokens: func() map[string]digitaloceantest.Token {
			return map[string]digitaloceantest.Token{token: {Scopes: []string{"droplet:read", "block_storage:read", "reserved_ip:read"}}}
		},
		RateLimit: 250, Refill: 240 * time.Millisecond,
	}))
	t.Cleanup(server.Close)
	return fakeAPI{
		secret:      fmt.Appendf(nil, `{"token": %q}`, token),
		spec:        map[string]any{"endpoint": server.URL},
		forProvider: func(name string) map[string]any { return map[string]any{"name": name} },
	}
}

var dropletStatuses = map[simulator.State]string{simulator.Starting: "new", simulator.Running: "active"}

func droplets(s *simulated, fleet string) []godo.Droplet {
	var out []godo.Droplet
	for _, vm := range s.simulator.VMs(fleet) {
		id, err := strconv.Atoi(vm.ID)
		if err != nil {
			panic(err) // In the description, the external names of Droplets are numbers.
		}
		d := godo.Droplet{ID: id, Name: vm.Name, Status: dropletStatuses[vm.State], Created: vm.CreatedAt.UTC().Format(time.RFC3339)}
		for key, value := range vm.Tags {
			d.Tags = append(d.Tags, key+":"+value)
		}
		out = append(out, d)
	}
	return out
}
