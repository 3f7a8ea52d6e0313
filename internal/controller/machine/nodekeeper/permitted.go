package nodekeeper

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
	"github.com/drover-dev/drover/internal/workernode"
)

// permitted returns the parameters without the labels and taints that the configuration of the cluster does not
// allow. A Machine with these gets no VM, so that they come from a change of the Machine or of its
// configuration after the VM was created. The rest of its Node is kept in sync.
func (x *Keeper) permitted(wn *Node, p workernode.Parameters) workernode.Parameters {
	var refused []string
	keep := func(allows func(string) bool, list, key string) bool {
		if allows == nil || isOwnKey(key) || allows(key) {
			return true
		}
		refused = append(refused, fmt.Sprintf("%s (%s)", key, list))
		return false
	}
	p.Labels = maps.Clone(p.Labels)
	maps.DeleteFunc(p.Labels, func(key, _ string) bool { return !keep(x.AllowsLabel, "allowedNodeLabels", key) })
	p.Taints = slices.DeleteFunc(slices.Clone(p.Taints), func(t workernode.Taint) bool { return !keep(x.AllowsTaint, "allowedNodeTaints", t.Key) })
	if len(refused) > 0 {
		slices.Sort(refused)
		x.Record.Event(wn.Machine, event.Warning(machinev1alpha1.EventNodeMetadataNotAllowed, errors.New("the configuration of the target cluster does not allow these keys on the Node, so they are left out: "+strings.Join(slices.Compact(refused), ", "))))
	}
	return p
}

// isOwnKey reports whether a key is one of Drover's.
func isOwnKey(key string) bool { return allow.IsInDomain(key, machinev1alpha1.Domain) }
