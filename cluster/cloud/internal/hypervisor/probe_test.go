package hypervisor

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/cluster/cloud/internal/network"
)

// script is a hypervisor whose VMs are shell scripts.
type script struct {
	name, text string
	check      error
}

func (s script) Name() string             { return s.name }
func (s script) Check(Image) error        { return s.check }
func (script) Protocol() network.Protocol { return network.Packets }
func (s script) Start(vm VM, console io.Writer) (*Machine, error) {
	return self().Start(vm.Dir, nil, []string{"sh", "-c", s.text}, console)
}

func TestChoose(t *testing.T) {
	lacking := script{name: "lacking", check: errors.New("qemu is not installed")}
	hanging := script{name: "hanging", text: "echo Decompressing; sleep 600"}
	silent := script{name: "silent", text: "sleep 600"}
	slow := script{name: "slow", text: "for i in 1 2 3 4 5 6; do echo \"starting $i\"; sleep 0.5; done; echo '" + probeMarker + "'; sleep 600"}
	restarting := script{name: "restarting", text: "while true; do echo Decompressing; sleep 0.1; done"}
	crashing := script{name: "crashing", text: "echo panic: no init; exit 1"}
	working := script{name: "working", text: "echo '" + probeMarker + "'; sleep 600"}
	quick := script{name: "quick", text: "echo '" + probeMarker + "'"}
	cases := map[string]struct {
		reason  string
		all     []Hypervisor
		chosen  string
		refused []string
	}{
		"First":     {"the first that works is the best one", []Hypervisor{working, quick}, "working", nil},
		"EndsSoon":  {"a VM that ends after the marker has booted", []Hypervisor{quick}, "quick", nil},
		"Refused":   {"each one that fails is refused with what it showed", []Hypervisor{lacking, hanging, silent, crashing, working}, "working", []string{"lacking: qemu is not installed", `hanging: the first program of the image did not run, and the console was silent for 2s; its console ends with "Decompressing"`, "silent: the first program of the image did not run, and the console was silent for 2s; its console is empty", `crashing: the VM ended before its first program ran (exit status 1); its console ends with "panic: no init"`}},
		"Slow":      {"a kernel that writes on is slow, and not stuck", []Hypervisor{slow, working}, "slow", nil},
		"Restarts":  {"a kernel that writes without end is refused", []Hypervisor{restarting, working}, "working", []string{`restarting: the first program of the image did not run within 4s; its console ends with "Decompressing"`}},
		"None":      {"there may be none", []Hypervisor{lacking}, "", []string{"lacking: qemu is not installed"}},
		"NotTested": {"without hypervisors there are no verdicts", nil, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			patience := func(h Hypervisor) Patience {
				switch h.Name() {
				case "hanging", "silent", "slow":
					return Patience{Silence: 2 * time.Second, Total: time.Minute}
				case "restarting":
					return Patience{Silence: time.Minute, Total: 4 * time.Second}
				default:
					return Patience{Silence: time.Minute, Total: time.Minute}
				}
			}
			h, verdicts := Choose(t.Context(), tc.all, "", patience)
			chosen := ""
			if h != nil {
				chosen = h.Name()
			}
			var refused []string
			for _, v := range verdicts {
				if v.Problem != nil {
					refused = append(refused, v.Name+": "+v.Problem.Error())
				}
			}
			if chosen != tc.chosen || strings.Join(refused, "\n") != strings.Join(tc.refused, "\n") {
				t.Errorf("%s: chose %q, refused\n%s", tc.reason, chosen, strings.Join(refused, "\n"))
			}
		})
	}
}
