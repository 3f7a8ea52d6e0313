package conformance

import (
	"fmt"
	"hash/fnv"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/fakes/awstest"
)

const awsRegion = "eu-west-1"

// startEC2 starts a fake of EC2. The number of its account follows from the name of the fleet.
func startEC2(t *testing.T, s *simulated, fleet string) fakeAPI {
	t.Helper()
	h := fnv.New64a()
	_, _ = h.Write([]byte(fleet))
	account := fmt.Sprintf("%012d", h.Sum64()%1_000_000_000_000)
	keyID, secret := "AKIA"+account, "password-of-"+fleet
	e := awstest.New(ec2{s, fleet}, awstest.Options{Burst: 100, Refill: 50 * time.Millisecond})
	e.Admit(keyID, awstest.Account{ID: account, Secret: secret})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	place := map[string]any{"region": awsRegion}
	return fakeAPI{
		secret:      []byte("[default]\naws_access_key_id = " + keyID + "\naws_secret_access_key = " + secret + "\n"),
		spec:        map[string]any{"endpoint": server.URL},
		place:       place,
		forProvider: func(string) map[string]any { return place },
	}
}

// ec2 provides the content of the account.
type ec2 struct {
	cloud *simulated
	fleet string
}

var ec2States = map[simulator.State]string{
	simulator.Starting: "pending", simulator.Running: "running", simulator.Interrupted: "stopped",
}

func (e ec2) Instances(_, region string) []awstest.Instance {
	var out []awstest.Instance
	for _, vm := range e.cloud.simulator.VMs(e.fleet) {
		if vm.ForProvider["region"] != region {
			continue
		}
		i := awstest.Instance{ID: vm.ID, Zone: region + "a", State: ec2States[vm.State], Tags: vm.Tags, LaunchTime: vm.CreatedAt}
		if vm.State == simulator.Interrupted {
			i.StateReason = "Server.SpotInstanceTermination: Spot instance termination"
		}
		out = append(out, i)
	}
	return out
}

// Beside returns no resources: the network interfaces of the simulator belong to VMs.
func (ec2) Beside(string, string) awstest.Beside { return awstest.Beside{} }
