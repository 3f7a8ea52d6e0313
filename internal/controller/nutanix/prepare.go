package nutanix

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/google/uuid"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Prepare validates the spec and its references, and chooses the request ID of the creation.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p, meta.GetExternalName(vm)); err != nil {
		return err
	}
	if _, err := a.resolve(ctx, p); err != nil {
		return err
	}
	if vm.GetAnnotations()[v1alpha1.AnnotationRequestID] != "" && meta.ExternalCreateIncomplete(vm) {
		return nil
	}
	meta.RemoveAnnotations(vm, v1alpha1.AnnotationCreateTask)
	meta.AddAnnotations(vm, map[string]string{v1alpha1.AnnotationRequestID: uuid.NewString()})
	return nil
}

// validate validates everything that the schema cannot validate without Prism Central.
func validate(p v1alpha1.VirtualMachineParameters, externalName string) error {
	for _, k := range slices.Sorted(maps.Keys(p.Attributes)) {
		if !native.IsAttributeName(k) || k == native.NoteVM {
			return native.Invalid("attributes", "invalid name %q: must have at most 128 letters, digits and ._/-, and must not be %s", k, native.NoteVM)
		}
		if !native.IsAttributeValue(p.Attributes[k]) {
			return native.Invalid("attributes", "invalid value of %s: must be one line of at most 256 characters", k)
		}
	}
	if n := len(native.WriteNotes(externalName, p.Attributes)); n > maxDescription {
		return native.Invalid("attributes", "they have %d characters as a description, at most %d are allowed", n, maxDescription)
	}
	return nil
}

// A domain is the place of a VM: a cluster with the networks.
type domain struct {
	// field that names the cluster.
	field, cluster string
	// subnetsField is the field that names the subnets.
	subnetsField string
	subnets      []string
}

// domainOf returns the place of a VM.
func domainOf(p v1alpha1.VirtualMachineParameters) domain {
	out := domain{field: "cluster", cluster: ptr.Deref(p.Cluster, ""), subnetsField: "subnets", subnets: p.Subnets}
	if p.FailureDomain == nil {
		return out
	}
	out.field, out.cluster = "failureDomain", *p.FailureDomain
	i := slices.IndexFunc(p.FailureDomains, func(d v1alpha1.FailureDomain) bool { return d.Name == *p.FailureDomain })
	if i < 0 {
		return out
	}
	d, path := p.FailureDomains[i], fmt.Sprintf("failureDomains[%d].", i)
	if d.Cluster != nil {
		out.field, out.cluster = path+"cluster", *d.Cluster
	}
	if len(d.Subnets) > 0 {
		out.subnetsField, out.subnets = path+"subnets", d.Subnets
	}
	return out
}

// resolved are the UUIDs of the references in a spec. An empty UUID stands for none.
type resolved struct {
	cluster, project, image string
	subnets, categories     []string
	// diskImages and diskContainers are those of the data disks.
	diskImages, diskContainers []string
}

// resolve finds the UUIDs of all references in a spec.
func (a *account) resolve(ctx context.Context, p v1alpha1.VirtualMachineParameters) (resolved, error) {
	var out resolved
	release, err := a.refs.Hold(ctx)
	if err != nil {
		return out, err
	}
	defer release()
	d := domainOf(p)
	c, err := a.find1(ctx, lookup{field: d.field, kind: kindCluster, name: d.cluster})
	if err != nil {
		return out, err
	}
	out.cluster = c.ExtID
	image, err := a.find1(ctx, lookup{field: "image", kind: kindImage, name: ptr.Deref(p.Image, "")})
	if err != nil {
		return out, err
	}
	out.image = image.ExtID
	if size := ptr.Deref(p.SystemDiskSizeGiB, 0); size > 0 && size*gib < image.SizeBytes {
		return out, native.Invalid("systemDiskSizeGiB", "invalid value %d: must be at least %d, the size of the image", size, (image.SizeBytes+gib-1)/gib)
	}
	for i, s := range d.subnets {
		e, err := a.find1(ctx, lookup{field: fmt.Sprintf("%s[%d]", d.subnetsField, i), kind: kindSubnet, name: s, cluster: out.cluster})
		if err != nil {
			return out, err
		}
		out.subnets = append(out.subnets, e.ExtID)
	}
	for i, disk := range p.DataDisks {
		var image string
		if disk.Image != nil {
			e, err := a.find1(ctx, lookup{field: fmt.Sprintf("dataDisks[%d].image", i), kind: kindImage, name: *disk.Image})
			if err != nil {
				return out, err
			}
			image = e.ExtID
		}
		container, err := a.containerOf(ctx, fmt.Sprintf("dataDisks[%d].storageContainer", i), disk.StorageContainer, out.cluster)
		if err != nil {
			return out, err
		}
		out.diskImages, out.diskContainers = append(out.diskImages, image), append(out.diskContainers, container)
	}
	for i, c := range p.Categories {
		e, err := a.find1(ctx, lookup{field: fmt.Sprintf("categories[%d]", i), kind: kindCategory, name: c.Key, value: c.Value})
		if err != nil {
			return out, err
		}
		out.categories = append(out.categories, e.ExtID)
	}
	if p.Project != nil {
		e, err := a.find1(ctx, lookup{field: "project", kind: kindProject, name: *p.Project})
		if err != nil {
			return out, err
		}
		out.project = e.ExtID
	}
	return out, nil
}

func (a *account) containerOf(ctx context.Context, field string, name *string, cluster string) (string, error) {
	if name == nil {
		return "", nil
	}
	e, err := a.find1(ctx, lookup{field: field, kind: kindContainer, name: *name, cluster: cluster})
	return e.ContainerExtID, err
}

// A kind is the kind of an object that a spec refers to, in the words of errors.
type kind string

const (
	kindCluster   kind = "cluster"
	kindImage     kind = "image"
	kindSubnet    kind = "subnet"
	kindContainer kind = "storage container"
	kindCategory  kind = "category"
	kindProject   kind = "project"
)

var pathOf = map[kind]string{
	kindCluster: pathClusters, kindImage: pathImages, kindSubnet: pathSubnets, kindContainer: pathContainers, kindCategory: pathCategories,
}

// A lookup is a reference of a spec.
type lookup struct {
	// field of the reference, for errors.
	field string
	kind  kind
	// name or UUID of the object. A category has a value too.
	name, value string
	// cluster is the UUID of the cluster that must have the object.
	cluster string
}

// An entity is an object that a lookup finds.
type entity struct {
	cluster
	// SizeBytes of an image.
	SizeBytes int64 `json:"sizeBytes"`
	// SubnetType, ClusterReference and ClusterReferences of a subnet.
	SubnetType        string   `json:"subnetType"`
	ClusterReference  string   `json:"clusterReference"`
	ClusterReferences []string `json:"clusterReferenceList"`
	// ContainerExtID and ClusterExtID of a storage container.
	ContainerExtID string `json:"containerExtId"`
	ClusterExtID   string `json:"clusterExtId"`
}

// is reports whether the lookup may find the entity.
func (l lookup) is(e entity) bool {
	switch l.kind {
	case kindCluster:
		return e.cluster.is(functionAOS)
	case kindSubnet:
		// An overlay subnet exists on all clusters.
		return e.SubnetType == "OVERLAY" || e.ClusterReference == l.cluster || slices.Contains(e.ClusterReferences, l.cluster)
	case kindContainer:
		return e.ClusterExtID == l.cluster
	}
	return true
}

// find1 returns the only object that a lookup finds.
func (a *account) find1(ctx context.Context, l lookup) (entity, error) {
	key := l
	key.field = ""
	return native.Reference(a.refs, key, func() (entity, error) {
		e, err := a.lookUp(ctx, l)
		if err != nil {
			return entity{}, classify("forProvider."+l.field, err)
		}
		return e, nil
	})
}

func (a *account) lookUp(ctx context.Context, l lookup) (entity, error) {
	_, err := uuid.Parse(l.name)
	isUUID := err == nil && l.kind != kindCategory
	var found []entity
	switch {
	case isUUID && l.kind == kindProject:
		return entity{cluster: cluster{ExtID: l.name}}, nil
	case isUUID && l.kind == kindContainer:
		// The API has two UUIDs of a storage container. Disks refer to the one that its list calls containerExtId.
		return entity{ContainerExtID: l.name}, nil
	case l.kind == kindProject:
		found, err = a.listProjects(ctx, l.name)
	case isUUID:
		var e entity
		e, _, err = get[entity](ctx, a.client, pathOf[l.kind]+"/"+strings.ToLower(l.name))
		if isNotFound(err) {
			return entity{}, native.Invalid(l.field, "%q: Prism Central has no such %s, or the user may not view it", l.name, l.kind)
		}
		found = []entity{e}
	default:
		filter := "name eq " + quote(l.name)
		if l.kind == kindCategory {
			filter = "key eq " + quote(l.name) + " and value eq " + quote(l.value)
		}
		found, _, err = list(ctx, a.client, pathOf[l.kind], url.Values{"$filter": {filter}}, func(e entity) string { return e.ExtID + e.ContainerExtID })
	}
	if err != nil {
		return entity{}, err
	}
	matching := slices.DeleteFunc(slices.Clone(found), func(e entity) bool { return !l.is(e) })
	switch {
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) > 1:
		return entity{}, native.Invalid(l.field, "%q: Prism Central has %d of this name: set the UUID of one", l.name, len(matching))
	case len(found) > 0 && l.kind == kindCluster:
		return entity{}, native.Invalid(l.field, "%q: this is Prism Central, and no cluster for VMs", l.name)
	case len(found) > 0:
		return entity{}, native.Invalid(l.field, "%q: the cluster %s does not have this %s", l.name, l.cluster, l.kind)
	case l.kind == kindCategory:
		return entity{}, native.Invalid(l.field, "%s:%s: Prism Central has no such category, or the user may not view it", l.name, l.value)
	}
	return entity{}, native.Invalid(l.field, "%q: Prism Central has no such %s, or the user may not view it", l.name, l.kind)
}

// listProjects returns the projects with a name. Version 4.1 of the API has no list of projects.
func (a *account) listProjects(ctx context.Context, name string) ([]entity, error) {
	var out []entity
	for offset := 0; offset < maxPages*pageSize; {
		r, err := a.client.do(ctx, request{method: http.MethodPost, path: pathProjects, body: object{"kind": "project", "length": pageSize, "offset": offset}})
		if err != nil {
			return nil, err
		}
		var answer struct {
			Entities []struct {
				Status struct {
					Name string `json:"name"`
				} `json:"status"`
				Metadata struct {
					UUID string `json:"uuid"`
				} `json:"metadata"`
			} `json:"entities"`
			Metadata struct {
				Total int `json:"total_matches"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(r.body, &answer); err != nil {
			return nil, fmt.Errorf("the response is not valid: %w", err)
		}
		for _, e := range answer.Entities {
			if e.Status.Name == name {
				out = append(out, entity{cluster: cluster{ExtID: e.Metadata.UUID}})
			}
		}
		if offset += len(answer.Entities); len(answer.Entities) == 0 || offset >= answer.Metadata.Total {
			break
		}
	}
	return out, nil
}
