package openstack

import (
	"context"
	"errors"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/gophercloud/gophercloud/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
)

// configs are the provider's kinds of configurations.
var configs = providerconfig.Configs{
	GroupVersion: v1alpha1.CRDGroupVersion,
	Namespaced:   &v1alpha1.ProviderConfig{},
	Cluster:      &v1alpha1.ClusterProviderConfig{},
}

// credentials are the contents of a provider config's Secret: an application credential, or a user
// with a password and the project.
type credentials struct {
	ApplicationCredentialID     string `json:"applicationCredentialID"`
	ApplicationCredentialSecret string `json:"applicationCredentialSecret"`

	Username       string `json:"username"`
	Password       string `json:"password"`
	UserDomainName string `json:"userDomainName"`

	ProjectID         string `json:"projectID"`
	ProjectName       string `json:"projectName"`
	ProjectDomainName string `json:"projectDomainName"`
}

const like = `{"applicationCredentialID": "...", "applicationCredentialSecret": "..."} or ` +
	`{"username": "...", "password": "...", "userDomainName": "Default", "projectName": "...", "projectDomainName": "Default"}`

// options returns the options of a login at Keystone.
func (c credentials) options(authURL string) (gophercloud.AuthOptions, error) {
	o := gophercloud.AuthOptions{IdentityEndpoint: authURL, AllowReauth: true}
	switch {
	case c.ApplicationCredentialID != "" && c.ApplicationCredentialSecret != "":
		o.ApplicationCredentialID, o.ApplicationCredentialSecret = c.ApplicationCredentialID, c.ApplicationCredentialSecret
	case c.Username != "" && c.Password != "" && c.UserDomainName != "" && (c.ProjectID != "" || c.ProjectName != "" && c.ProjectDomainName != ""):
		o.Username, o.Password, o.DomainName = c.Username, c.Password, c.UserDomainName
		o.Scope = &gophercloud.AuthScope{ProjectID: c.ProjectID}
		if c.ProjectID == "" {
			o.Scope = &gophercloud.AuthScope{ProjectName: c.ProjectName, DomainName: c.ProjectDomainName}
		}
	default:
		return o, errors.New("must be like " + like + ", and nothing may be empty")
	}
	return o, nil
}

// findProject returns the project that mg's provider config names. It is read each time, so that a
// change takes effect at once.
func findProject(ctx context.Context, c client.Reader, mg resource.ModernManaged) (projectKey, error) {
	pc, err := configs.Get(ctx, c, mg)
	if err != nil {
		return projectKey{}, err
	}
	spec := v1alpha1.SpecOf(pc)
	key, err := providerconfig.SecretOf(pc)
	if err != nil {
		return projectKey{}, err
	}
	cr := credentials{}
	if err := key.Read(ctx, c, &cr, like); err != nil {
		return projectKey{}, err
	}
	if _, err := cr.options(spec.AuthURL); err != nil {
		return projectKey{}, fmt.Errorf("%s: %w", key, err)
	}
	return projectKey{authURL: spec.AuthURL, region: spec.Region, ca: string(spec.CABundle), credentials: cr}, nil
}
