package options

import (
	"flag"
	"strings"
	"testing"

	"sigs.k8s.io/karpenter/pkg/operator/options"
)

func TestOptionsThatCannotBeUsedAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		err  string
	}{
		"ANamespaceIsEnough":    {[]string{"--machine-namespace=nodes"}, ""},
		"WithoutANamespace":     {nil, `--machine-namespace: is empty`},
		"WithATimeoutTooShort":  {[]string{"--machine-namespace=nodes", "--vm-timeout=1s"}, "--vm-timeout: is 1s: must be at least 1m0s"},
		"WithATimeoutOfNoUnits": {[]string{"--machine-namespace=nodes", "--vm-timeout=1"}, "parsing flags"},
	} {
		t.Run(name, func(t *testing.T) {
			o, fs := &Options{}, &options.FlagSet{FlagSet: flag.NewFlagSet("test", flag.ContinueOnError)}
			fs.SetOutput(&strings.Builder{})
			o.AddFlags(fs)
			err := o.Parse(fs, c.args...)
			if err == nil {
				err = o.Validate()
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v", err)
			}
		})
	}
}
