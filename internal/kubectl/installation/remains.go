package installation

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Credential is the Secret that the configuration of a cloud names.
type Credential struct {
	Namespace, Name, Key string
	// Form of the content, from the comment in the configuration.
	Form string
}

// secretComment is the text above the reference to a Secret in a configuration.
var secretComment = regexp.MustCompile(`(?m)^ *secretRef:\n((?: *#.*\n)+)`)

// CredentialOf returns the Secret that a configuration names, or none.
func CredentialOf(o Object) *Credential {
	ref, _, _ := unstructured.NestedStringMap(o.Object, "spec", "credentials", "secretRef")
	if ref["name"] == "" {
		return nil
	}
	c := &Credential{Namespace: ref["namespace"], Name: ref["name"], Key: ref["key"]}
	if m := secretComment.FindStringSubmatch(o.Text); m != nil {
		var lines []string
		for line := range strings.Lines(m[1]) {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
		}
		c.Form = strings.Join(lines, " ")
	}
	return c
}

// Facts are observations of the cluster after an installation.
type Facts struct {
	// Secrets that exist, by NAMESPACE/NAME.
	Secrets map[string]bool
	// Context is the flag of kubectl that selects the cluster, such as " --context=prod", or "".
	Context string
}

// A Todo is something that the user does after an installation.
type Todo struct {
	Text     string
	Commands []string
}

// Remains returns the steps that are left to the user.
func Remains(o Options, steps []Step, f Facts) []Todo {
	var out []Todo
	if o.Cloud == TargetCluster {
		return []Todo{{"Make a kubeconfig of the account drover-system/drover, and name it in a ClusterProviderConfig of the control cluster: docs/install.md, step 4.", nil}}
	}
	configured := false
	for _, s := range Select(steps, Configuration) {
		for _, u := range s.Objects {
			configured = configured || !isOfThisCluster(u)
			if c := CredentialOf(u); c != nil && !f.Secrets[c.Namespace+"/"+c.Name] {
				out = append(out, Todo{
					fmt.Sprintf("Credentials of %s, in the file FILE. %s", o.Cloud, c.Form),
					[]string{fmt.Sprintf("kubectl%s -n %s create secret generic %s --from-file=%s=FILE", f.Context, c.Namespace, c.Name, c.Key)},
				})
			}
			if p := u.Placeholders(); len(p) > 0 {
				out = append(out, Todo{
					fmt.Sprintf("%s is not applied. Replace %s.", u.Name(), strings.Join(p, ", ")),
					[]string{
						fmt.Sprintf("kubectl drover install %s --part=configuration -o yaml > %s.yaml", o.Cloud, o.Cloud),
						fmt.Sprintf("kubectl%s apply -f %s.yaml", f.Context, o.Cloud),
					},
				})
			}
		}
	}
	if !configured {
		out = append(out, Todo{fmt.Sprintf("The configuration of the provider of %s: a ClusterProviderConfig %q with its credentials, as the documentation of the provider describes.", o.Cloud, "default"), nil})
	}
	if len(o.Joining) == 0 {
		out = append(out, Todo{
			"The cluster that Machines join: docs/install.md, step 4. For the cluster that Drover runs in, add --join-this-cluster=NAMESPACE. For another:",
			[]string{"kubectl drover install " + TargetCluster + " --context=TARGET"},
		})
	}
	out = append(out, Todo{"A class and a MachineDeployment. Replace what begins with REPLACE-.", []string{
		fmt.Sprintf("kubectl drover install %s --part=example -o yaml > workers.yaml", o.Cloud),
		fmt.Sprintf("kubectl%s apply -f workers.yaml", f.Context),
	}})
	return out
}

func isOfThisCluster(o Object) bool { return o.GroupVersionKind().Group == "cluster.drover.dev" }
