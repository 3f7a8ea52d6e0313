package kubelet

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/drover-dev/drover/cluster/cloud/internal/userdata"
)

const (
	bootstrapFile = "/etc/kubernetes/bootstrap-kubelet.conf"
	caFile        = "/etc/kubernetes/pki/ca.crt"
	configFile    = "/var/lib/kubelet/config.yaml"
	envFile       = "/etc/default/kubelet"
	unitFile      = "/etc/systemd/system/kubelet.service"
	scriptFile    = "/opt/drover/install-kubelet.sh"
)

var facts = Facts{
	ID: "vm-0123456789", Name: "Worker-1", Zone: "zone-b", Size: "small", ProviderID: "local:///zone-b/vm-0123456789",
	OSImage: "Ubuntu", IP: "10.200.0.10", PodCIDR: "100.64.0.0/24", CPU: resource.MustParse("1"), Memory: resource.MustParse("2Gi"),
}

// instance returns a VM that joins, in its state after cloud-init.
func instance() *userdata.Instance {
	return &userdata.Instance{
		Files: map[string]string{
			bootstrapFile: `{apiVersion: v1, kind: Config, current-context: c,
				clusters: [{name: c, cluster: {server: "https://api:6443", certificate-authority: ` + caFile + `}}],
				users: [{name: u, user: {token: abcdef.0123456789abcdef}}],
				contexts: [{name: c, context: {cluster: c, user: u}}]}`,
			caFile:     testCA,
			configFile: "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nauthentication: {x509: {clientCAFile: " + caFile + "}}\n",
			envFile:    "# flags\nKUBELET_EXTRA_ARGS=--hostname-override=w1 --node-labels=tier=web --register-with-taints=a=b:NoSchedule,c:NoExecute\n",
			unitFile: "[Unit]\nDescription=k\n[Service]\nEnvironmentFile=-" + envFile + "\nExecStart=/usr/local/bin/kubelet \\\n" +
				"  --bootstrap-kubeconfig=" + bootstrapFile + " --kubeconfig=/etc/kubernetes/kubelet.conf --config=" + configFile + " $KUBELET_EXTRA_ARGS\n",
			scriptFile: "#!/bin/sh\n",
		},
		Commands: [][]string{{scriptFile, "v1.35.4"}, {"systemctl", "enable", "--now", "kubelet"}},
	}
}

func TestPlan(t *testing.T) {
	type result struct {
		Node, Version, ProviderID, IP, Server, Token string
		Labels                                       map[string]string
		Taints                                       []corev1.Taint
		Register, Rotate, Serving                    bool
		MaxPods                                      int64
		Lease, Report                                time.Duration
	}
	base := func(change func(*result)) result {
		r := result{
			Node: "w1", Version: "v1.35.4", ProviderID: facts.ProviderID, IP: facts.IP,
			Server: "https://api:6443", Token: "abcdef.0123456789abcdef", Labels: map[string]string{"tier": "web"},
			Taints:   []corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}},
			Register: true, MaxPods: 110, Lease: 40 * time.Second, Report: 5 * time.Minute,
		}
		if change != nil {
			change(&r)
		}
		return r
	}
	cases := map[string]struct {
		change func(*userdata.Instance)
		want   result
	}{
		"TheKubeletOfTheUserData": {want: base(nil)},
		"TheHostNameOfTheUserDataNamesTheNodeWhenNoFlagDoes": {
			change: func(in *userdata.Instance) { in.Files[envFile], in.Hostname = "", "Host-1" },
			want:   base(func(r *result) { r.Node, r.Labels, r.Taints = "host-1", map[string]string{}, nil }),
		},
		"TheNameOfTheVMIsTheLastResort": {
			change: func(in *userdata.Instance) { in.Files[envFile] = "" },
			want:   base(func(r *result) { r.Node, r.Labels, r.Taints = "worker-1", map[string]string{}, nil }),
		},
		"FlagsWinOverTheConfiguration": {
			change: func(in *userdata.Instance) {
				in.Files[configFile] += "providerID: from-config\nrotateCertificates: true\nserverTLSBootstrap: true\nmaxPods: 5\n" +
					"nodeLeaseDurationSeconds: 8\nnodeStatusReportFrequency: 1m\nregisterWithTaints: [{key: x, effect: NoSchedule}]\n"
				in.Files[envFile] = `KUBELET_EXTRA_ARGS="--hostname-override w1 --provider-id=from-flag --node-ip=10.0.0.1 --register-node=false --node-labels tier=web"`
			},
			want: base(func(r *result) {
				r.ProviderID, r.IP, r.Register, r.Rotate, r.Serving = "from-flag", "10.0.0.1", false, true, true
				r.MaxPods, r.Lease, r.Report = 5, 8*time.Second, time.Minute
				r.Taints = []corev1.Taint{{Key: "x", Effect: "NoSchedule"}}
			}),
		},
		"FieldsOfLaterKubelets": {
			change: func(in *userdata.Instance) {
				in.Files[configFile] += "memoryReservationPolicy: None\ntlsCurvePreferences: [29]\ndefaultPodSysctls: {net.ipv4.ip_forward: \"1\"}\n"
			},
			want: base(nil),
		},
		"ADropInReplacesTheCommandLine": {
			change: func(in *userdata.Instance) {
				in.Files["/etc/systemd/system/kubelet.service.d/10-args.conf"] = "[Service]\nEnvironment=\"ARGS=--bootstrap-kubeconfig=" + bootstrapFile + " --kubeconfig=/k\"\n" +
					"ExecStart=\nExecStart=/usr/local/bin/kubelet $ARGS $KUBELET_EXTRA_ARGS\n"
			},
			want: base(nil),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := instance()
			if tc.change != nil {
				tc.change(in)
			}
			p, err := NewPlan(in, facts)
			if err != nil {
				t.Fatal(err)
			}
			got := result{p.NodeName, p.Version, p.ProviderID, p.IP, p.Bootstrap.Host, p.Bootstrap.BearerToken, p.Labels, p.Taints,
				p.Register, p.RotateCertificates, p.ServingCertificate, p.MaxPods, p.LeaseDuration, p.StatusReport}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if string(p.Bootstrap.CAData) != testCA {
				t.Errorf("CA %s", p.Bootstrap.CAData)
			}
		})
	}
}

func TestPlanNamesWhatKeepsTheKubeletFromRunning(t *testing.T) {
	without := func(file string) func(*userdata.Instance) {
		return func(in *userdata.Instance) { delete(in.Files, file) }
	}
	replace := func(file, was, is string) func(*userdata.Instance) {
		return func(in *userdata.Instance) {
			if !strings.Contains(in.Files[file], was) {
				panic("nothing to replace: " + was)
			}
			in.Files[file] = strings.ReplaceAll(in.Files[file], was, is)
		}
	}
	extra := func(flags string) func(*userdata.Instance) {
		return func(in *userdata.Instance) { in.Files[envFile] = "KUBELET_EXTRA_ARGS=" + flags }
	}
	commands := func(c ...[]string) func(*userdata.Instance) {
		return func(in *userdata.Instance) { in.Commands = c }
	}
	start := []string{"systemctl", "start", "kubelet.service"}
	cases := map[string]struct {
		change func(*userdata.Instance)
		want   string
	}{
		"NotStarted":        {commands([]string{scriptFile, "v1.35.4"}, []string{"systemctl", "enable", "kubelet"}), `kubelet.service: was never started: nothing runs "systemctl enable --now kubelet"`},
		"NoUnit":            {without(unitFile), "kubelet.service: unit not found: /etc/systemd/system/kubelet.service is missing"},
		"NoExecStart":       {replace(unitFile, "ExecStart=", "ExecStop="), "kubelet.service: has 0 ExecStart lines, must have one"},
		"NoEnvironmentFile": {func(in *userdata.Instance) { replace(unitFile, "=-", "=")(in); without(envFile)(in) }, "kubelet.service: EnvironmentFile /etc/default/kubelet is missing"},
		"BrokenUnit":        {replace(unitFile, "Description=k", "Description"), "kubelet.service: /etc/systemd/system/kubelet.service: a line is neither a section nor an assignment"},
		"NotInstalled":      {commands(start), `kubelet.service: /usr/local/bin/kubelet: no such file: nothing runs "install-kubelet.sh VERSION"`},
		"NoInstaller":       {without(scriptFile), "/opt/drover/install-kubelet.sh is missing: no kubelet was installed"},
		"NoVersion":         {commands([]string{scriptFile}, start), "/opt/drover/install-kubelet.sh: VERSION is missing: must be like v1.35.4"},
		"WrongVersion":      {commands([]string{scriptFile, "1.35"}, start), `/opt/drover/install-kubelet.sh: invalid VERSION "1.35": must be like v1.35.4`},
		"UnknownFlag":       {extra("--no-such-flag"), "kubelet: unknown flag: --no-such-flag"},
		"Argument":          {extra("run"), `kubelet: unknown command "run"`},
		"NoConfig":          {without(configFile), "kubelet: --config: /var/lib/kubelet/config.yaml is missing"},
		"UnknownField":      {replace(configFile, "authentication", "authentification"), `kubelet: /var/lib/kubelet/config.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "authentification"`},
		"OtherKind":         {replace(configFile, "kind: KubeletConfiguration", "kind: Kubelet"), "kubelet: /var/lib/kubelet/config.yaml: is kubelet.config.k8s.io/v1beta1 Kubelet, must be kubelet.config.k8s.io/v1beta1 KubeletConfiguration"},
		"NoCA":              {without(caFile), "kubelet: authentication.x509.clientCAFile: /etc/kubernetes/pki/ca.crt is missing"},
		"NoCAForKubeconfig": {func(in *userdata.Instance) {
			without(caFile)(in)
			replace(configFile, "authentication: {x509: {clientCAFile: "+caFile+"}}", "")(in)
		}, "kubelet: /etc/kubernetes/bootstrap-kubelet.conf: certificate-authority: /etc/kubernetes/pki/ca.crt is missing"},
		"BrokenCA":           {replace(caFile, "BEGIN", "BEGINN"), "kubelet: /etc/kubernetes/bootstrap-kubelet.conf: certificate-authority: is not a PEM certificate"},
		"NoBootstrapFile":    {without(bootstrapFile), "kubelet: --bootstrap-kubeconfig: /etc/kubernetes/bootstrap-kubelet.conf is missing"},
		"NoBootstrapFlag":    {replace(unitFile, "--bootstrap-kubeconfig="+bootstrapFile, ""), "kubelet: --bootstrap-kubeconfig is missing, and /etc/kubernetes/kubelet.conf does not exist"},
		"NoKubeconfigFlag":   {replace(unitFile, "--kubeconfig=/etc/kubernetes/kubelet.conf", ""), "kubelet: --kubeconfig is missing: it would run without an API server"},
		"PlainHTTP":          {replace(bootstrapFile, "https:", "http:"), `kubelet: /etc/kubernetes/bootstrap-kubelet.conf: server: invalid value "http://api:6443": must be an https URL`},
		"NoToken":            {replace(bootstrapFile, "{token: abcdef.0123456789abcdef}", "{}"), "kubelet: /etc/kubernetes/bootstrap-kubelet.conf: has no token"},
		"NodeName":           {extra("--hostname-override=a_b"), `kubelet: invalid node name "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"NodeIP":             {extra("--node-ip=10.0.0"), `kubelet: --node-ip: invalid value "10.0.0": must be an IP address`},
		"CloudProvider":      {extra("--cloud-provider=aws"), `kubelet: --cloud-provider: invalid value "aws": must be empty or external`},
		"LabelWithoutValue":  {extra("--node-labels=tier"), `kubelet: --node-labels: invalid value "tier": must be key=value`},
		"ForbiddenLabel":     {extra("--node-labels=node-role.kubernetes.io/worker=x"), `kubelet: --node-labels: "node-role.kubernetes.io/worker": a kubelet must not set this label of kubernetes.io`},
		"TaintWithoutEffect": {extra("--register-with-taints=a=b"), `kubelet: --register-with-taints: invalid value "a=b": must be key=value:Effect or key:Effect`},
		"TaintEffect":        {extra("--register-with-taints=a=b:Never"), `kubelet: --register-with-taints: invalid effect "Never": must be one of NoExecute, NoSchedule and PreferNoSchedule`},
		"Reserved":           {func(in *userdata.Instance) { in.Files[configFile] += "kubeReserved: {cpu: much}\n" }, `kubelet: kubeReserved.cpu: invalid value "much": must be a quantity like 100Mi`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := instance()
			tc.change(in)
			_, err := NewPlan(in, facts)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
}

func TestTheNodeHasWhatItsCloudKnows(t *testing.T) {
	in := instance()
	in.Files[configFile] += "kubeReserved: {cpu: 100m, memory: 200Mi}\nsystemReserved: {cpu: 100m}\n"
	p, err := NewPlan(in, facts)
	if err != nil {
		t.Fatal(err)
	}
	n := p.node(time.Unix(1e9, 0))
	if n.Spec.ProviderID != facts.ProviderID || n.Name != "w1" {
		t.Errorf("Node %s has provider ID %s", n.Name, n.Spec.ProviderID)
	}
	want := map[string]string{"tier": "web", corev1.LabelTopologyZone: "zone-b", corev1.LabelInstanceTypeStable: "small", corev1.LabelHostname: "w1"}
	got := maps.Clone(n.Labels)
	maps.DeleteFunc(got, func(k, _ string) bool { return want[k] == "" })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	for name, quantity := range map[corev1.ResourceName]string{"cpu": "800m", "memory": "1748Mi", "pods": "110"} {
		if got := n.Status.Allocatable[name]; got.Cmp(resource.MustParse(quantity)) != 0 {
			t.Errorf("allocatable %s is %s, want %s", name, got.String(), quantity)
		}
	}
	if len(p.Labels) != 1 {
		t.Errorf("making the Node changed the plan's labels to %v", p.Labels)
	}
}

func TestConditionsAreWrittenOnlyWhenTheyDiffer(t *testing.T) {
	then, now := time.Unix(1e9, 0), time.Unix(2e9, 0)
	lost := conditions(then, then)
	lost[3].Status = corev1.ConditionUnknown
	cases := map[string]struct {
		have    []corev1.NodeCondition
		drifted bool
		ready   time.Time
	}{
		"AsTheyShouldBe":         {conditions(then, then), false, then},
		"NoneYet":                {nil, true, now},
		"UnknownAfterAnOutage":   {lost, true, now},
		"OthersConditionsAreLet": {append(conditions(then, then), corev1.NodeCondition{Type: "Mine", Status: "True"}), false, then},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, drifted := wantConditions(tc.have, now)
			if drifted != tc.drifted {
				t.Errorf("drifted = %v", drifted)
			}
			ready := want[3]
			if ready.Type != corev1.NodeReady || ready.Status != corev1.ConditionTrue || !ready.LastTransitionTime.Time.Equal(tc.ready) {
				t.Errorf("Ready is %+v, want a transition at %s", ready, tc.ready)
			}
			if !ready.LastHeartbeatTime.Time.Equal(now) {
				t.Errorf("heartbeat %s", ready.LastHeartbeatTime)
			}
		})
	}
}
