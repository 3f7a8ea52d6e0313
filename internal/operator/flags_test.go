package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

func defaults() Flags {
	return Flags{
		LeaderElection: true, MaxReconcileRate: 100, Concurrency: 20, Poll: time.Minute, Sync: time.Hour,
		MetricsBindAddress: ":8080", HealthProbeBindAddress: ":8081",
	}
}

func TestFlags(t *testing.T) {
	with := func(change func(*Flags)) Flags {
		f := defaults()
		change(&f)
		return f
	}
	cases := map[string]struct {
		args []string
		env  map[string]string
		poll time.Duration // the operator's own default
		want Flags
		err  string
	}{
		"NothingGivenMeansDefaults": {want: defaults()},
		"AnOperatorHasItsOwnPoll":   {poll: time.Hour, want: with(func(f *Flags) { f.Poll = time.Hour })},
		"FlagsAreRead": {
			args: []string{"--debug", "--no-leader-election", "--poll=5s", "--max-reconcile-rate=7"},
			want: with(func(f *Flags) { f.Debug, f.LeaderElection, f.Poll, f.MaxReconcileRate = true, false, 5*time.Second, 7 }),
		},
		"TheEnvironmentIsRead": {
			env: map[string]string{"LEADER_ELECTION": "false", "CONCURRENCY": "3", "SYNC": "2h", "METRICS_BIND_ADDRESS": "127.0.0.1:1"},
			want: with(func(f *Flags) {
				f.LeaderElection, f.Concurrency, f.Sync, f.MetricsBindAddress = false, 3, 2*time.Hour, "127.0.0.1:1"
			}),
		},
		"AnEmptyAddressServesNothing": {
			args: []string{"--metrics-bind-address=", "--health-probe-bind-address="},
			want: with(func(f *Flags) { f.MetricsBindAddress, f.HealthProbeBindAddress = "", "" }),
		},
		"TheLeaseIsInThePodsNamespace": {
			env:  map[string]string{"POD_NAMESPACE": "crossplane-system"},
			want: with(func(f *Flags) { f.LeaderElectionNamespace = "crossplane-system" }),
		},
		"ZeroConcurrencyIsRefused": {args: []string{"--concurrency=0"}, err: "--concurrency: invalid value 0: must be 1 or more"},
		"APollOfZeroIsRefused":     {args: []string{"--poll=0s"}, err: "--poll: invalid value 0s: must be 1s or more"},
		"AWordForARateIsRefused":   {args: []string{"--max-reconcile-rate=fast"}, err: "--max-reconcile-rate"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			var got Flags
			p, err := kong.New(&got, Operator{Poll: tc.poll}.defaults())
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Parse(tc.args)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
