package kubelet

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

func flagNames(s string) []string { return strings.Fields(s) }

// parseFlags reads a kubelet's command line, and returns the values by flag. The values of a
// repeated flag are joined by commas.
func parseFlags(args []string) (map[string]string, error) {
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.Usage = func() {}
	for _, n := range boolFlags {
		fs.Bool(n, false, "")
	}
	for _, n := range valueFlags {
		fs.StringArray(n, nil, "")
	}
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("kubelet: unknown command %q", fs.Arg(0))
	}
	out := map[string]string{}
	fs.Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(pflag.SliceValue); ok {
			out[f.Name] = strings.Join(v.GetSlice(), ",")
			return
		}
		out[f.Name] = f.Value.String()
	})
	return out, nil
}
