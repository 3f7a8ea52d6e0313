package real

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	cloud "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
)

// A Credential is an application credential.
type Credential struct{ ID, Secret string }

// A Project has a user with a key pair.
type Project struct {
	ID, Name string
	// Member may create servers, and Reader may only read.
	Member, Reader Credential
	// NetworkID and SubnetID are those of the network of the nodes, whose addresses are those of the local cloud's guests.
	NetworkID, SubnetID string
	// GroupID is the security group with the name of the example, "nodes".
	GroupID string

	userID string
	// compute and identity are clients of the user.
	compute, identity *gophercloud.ServiceClient
}

// plenty is more than a test needs.
const plenty = 10000

// NewProject makes a project with a quota that no test exceeds.
func (c *Cloud) NewProject(ctx context.Context, name string) (*Project, error) {
	made, err := projects.Create(ctx, c.identity, projects.CreateOpts{Name: name, DomainID: "default"}).Extract()
	if err != nil {
		return nil, err
	}
	p := &Project{ID: made.ID, Name: name}
	user, err := users.Create(ctx, c.identity, users.CreateOpts{Name: name, Password: password, DomainID: "default", DefaultProjectID: p.ID}).Extract()
	if err != nil {
		return nil, err
	}
	p.userID = user.ID
	for _, role := range []string{"member", "reader"} {
		id, err := c.role(ctx, role)
		if err != nil {
			return nil, err
		}
		if err := roles.Assign(ctx, c.identity, id, roles.AssignOpts{UserID: p.userID, ProjectID: p.ID}).ExtractErr(); err != nil {
			return nil, err
		}
	}
	if err := c.loginUser(ctx, p); err != nil {
		return nil, err
	}
	if p.Member, err = c.NewCredential(ctx, p, "member", "reader"); err != nil {
		return nil, err
	}
	if p.Reader, err = c.NewCredential(ctx, p, "reader"); err != nil {
		return nil, err
	}
	if _, err := keypairs.Create(ctx, p.compute, keypairs.CreateOpts{Name: KeyPair}).Extract(); err != nil {
		return nil, err
	}
	group, err := groups.Create(ctx, c.network, groups.CreateOpts{Name: Network, ProjectID: p.ID}).Extract()
	if err != nil {
		return nil, err
	}
	p.GroupID = group.ID
	if err := c.addNetwork(ctx, p); err != nil {
		return nil, err
	}
	return p, c.SetQuota(ctx, p, plenty)
}

func (c *Cloud) role(ctx context.Context, name string) (string, error) {
	pages, err := roles.List(c.identity, roles.ListOpts{Name: name}).AllPages(ctx)
	if err != nil {
		return "", err
	}
	found, err := roles.ExtractRoles(pages)
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d roles are named %s: %w", len(found), name, err)
	}
	return found[0].ID, nil
}

// loginUser logs the user of a project in.
func (c *Cloud) loginUser(ctx context.Context, p *Project) error {
	user, err := cloud.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: c.URL + "/identity/v3", Username: p.Name, Password: password, DomainName: "Default", AllowReauth: true,
		Scope: &gophercloud.AuthScope{ProjectID: p.ID},
	})
	if err != nil {
		return err
	}
	p.identity = &gophercloud.ServiceClient{ProviderClient: user, Endpoint: c.URL + "/identity/v3/"}
	p.compute = &gophercloud.ServiceClient{ProviderClient: user, Endpoint: c.URL + "/compute/v2.1/"}
	return nil
}

// NewCredential returns another application credential of a project. Keystone adds no role that another one implies: with
// the new defaults of Nova's policy a member who may not read does not even see the servers that it created.
func (c *Cloud) NewCredential(ctx context.Context, p *Project, names ...string) (Credential, error) {
	var given []applicationcredentials.Role
	for _, name := range names {
		given = append(given, applicationcredentials.Role{Name: name})
	}
	made, err := applicationcredentials.Create(ctx, p.identity, p.userID, applicationcredentials.CreateOpts{Name: rand.Text(), Roles: given}).Extract()
	if err != nil {
		return Credential{}, err
	}
	return Credential{made.ID, made.Secret}, nil
}

// SetQuota sets how many servers a project may have.
func (c *Cloud) SetQuota(ctx context.Context, p *Project, servers int) error {
	many := plenty
	ram := plenty * 1024
	_, err := quotasets.Update(ctx, c.compute, p.ID, quotasets.UpdateOpts{Instances: &servers, Cores: &many, RAM: &ram}).Extract()
	return err
}

// SetFull sets whether there is room for the servers of a project. An aggregate that names a project, and has no host, leaves
// it none: see limit_tenants_to_placement_aggregate of Nova.
func (c *Cloud) SetFull(ctx context.Context, p *Project, full bool) error {
	name := "full-" + p.Name
	if full {
		made, err := aggregates.Create(ctx, c.compute, aggregates.CreateOpts{Name: name}).Extract()
		if err != nil {
			return err
		}
		_, err = aggregates.SetMetadata(ctx, c.compute, made.ID, aggregates.SetMetadataOpts{Metadata: map[string]any{"filter_tenant_id": p.ID}}).Extract()
		return err
	}
	pages, err := aggregates.List(c.compute).AllPages(ctx)
	if err != nil {
		return err
	}
	all, err := aggregates.ExtractAggregates(pages)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.Name == name {
			return aggregates.Delete(ctx, c.compute, a.ID).ExtractErr()
		}
	}
	return nil
}
