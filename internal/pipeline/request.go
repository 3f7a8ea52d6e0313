package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
)

// capabilities that Crossplane v2.4 advertises.
var capabilities = []fnv1.Capability{
	fnv1.Capability_CAPABILITY_CAPABILITIES,
	fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
	fnv1.Capability_CAPABILITY_CREDENTIALS,
	fnv1.Capability_CAPABILITY_CONDITIONS,
	fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
}

// request returns the first request of a step.
func (r *run) request(ctx context.Context, s Step) (*fnv1.RunFunctionRequest, error) {
	req := &fnv1.RunFunctionRequest{
		Observed: r.observed, Desired: r.desired, Context: r.context, Input: s.Input,
		Credentials:       map[string]*fnv1.Credentials{},
		RequiredResources: map[string]*fnv1.Resources{},
		RequiredSchemas:   map[string]*fnv1.Schema{},
	}
	if err := r.addCredentials(ctx, s, req); err != nil {
		return nil, err
	}
	if err := r.addBootstrap(ctx, s, req); err != nil {
		return nil, err
	}
	r.addRemembered(ctx, s, req)
	return req, nil
}

func (r *run) addCredentials(ctx context.Context, s Step, req *fnv1.RunFunctionRequest) error {
	for _, c := range s.Credentials {
		if r.Secrets == nil {
			return errors.New("this runner reads no Secrets, so that no step can have credentials")
		}
		secret := &corev1.Secret{}
		if err := r.Secrets.Get(ctx, c.Secret, secret); err != nil {
			return fmt.Errorf("cannot get credential %q from Secret %s: %w", c.Name, c.Secret, err)
		}
		req.Credentials[c.Name] = &fnv1.Credentials{Source: &fnv1.Credentials_CredentialData{
			CredentialData: &fnv1.CredentialData{Data: secret.Data},
		}}
	}
	return nil
}

// addBootstrap adds the requirements that the Composition declares for the step.
func (r *run) addBootstrap(ctx context.Context, s Step, req *fnv1.RunFunctionRequest) error {
	for _, required := range s.RequiredResources {
		found, err := r.snapshot.fetch(ctx, required.Selector)
		if err != nil {
			return fmt.Errorf("cannot fetch required resources %q: %w", required.Name, err)
		}
		req.RequiredResources[required.Name] = found
		r.require(s.Name, required.Name, required.Selector)
	}
	for _, required := range s.RequiredSchemas {
		found, err := r.snapshot.schema(ctx, required.Selector)
		if err != nil {
			return fmt.Errorf("cannot fetch required schema %q: %w", required.Name, err)
		}
		req.RequiredSchemas[required.Name] = found
	}
	return nil
}

// addRemembered adds the step's requirements of the last run. If one cannot be read, the step
// is called without it, and fails only if it still requires it.
func (r *run) addRemembered(ctx context.Context, s Step, req *fnv1.RunFunctionRequest) {
	last := r.last[s.Name]
	for name, selector := range last.resources {
		if _, bootstrap := req.RequiredResources[name]; bootstrap {
			continue
		}
		if found, err := r.snapshot.fetch(ctx, selector); err == nil {
			req.RequiredResources[name] = found
		}
	}
	for name, selector := range last.schemas {
		if _, bootstrap := req.RequiredSchemas[name]; bootstrap {
			continue
		}
		if found, err := r.snapshot.schema(ctx, selector); err == nil {
			req.RequiredSchemas[name] = found
		}
	}
}

// tagOf identifies a request, without its meta. Equal requests of the same build have
// equal tags.
func tagOf(req *fnv1.RunFunctionRequest) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return ""
	}
	hash := sha256.Sum256(b)
	return hex.EncodeToString(hash[:])
}
