package step

import (
	"fmt"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/plan"
)

// A Response is built by a step. It starts with the desired state of earlier steps.
type Response struct {
	*fnv1.RunFunctionResponse
}

// NewResponse returns a response with the default delay until the next call, [plan.AtRest].
func NewResponse(req *fnv1.RunFunctionRequest) Response {
	rsp := response.To(req, plan.AtRest)
	if rsp.Desired == nil {
		rsp.Desired = &fnv1.State{}
	}
	return Response{rsp}
}

// Status sets the XR's status: together with the fields that earlier steps set, it is all that Drover
// owns, except for the conditions: see SetConditions.
func (r Response) Status(apiVersion, kind string, status any) error {
	s, err := toStruct(map[string]any{"apiVersion": apiVersion, "kind": kind}, "status", status)
	if err != nil {
		return fmt.Errorf("cannot encode the status: %w", err)
	}
	// Crossplane keeps the conditions: Drover's are set by SetConditions.
	fields := s.GetFields()["status"].GetStructValue().GetFields()
	delete(fields, "conditions")
	for k, v := range r.composite().GetResource().GetFields()["status"].GetStructValue().GetFields() {
		if _, ok := fields[k]; !ok {
			fields[k] = v
		}
	}
	r.composite().Resource = s
	return nil
}

// IfUnchanged makes the API server reject the status if the XR has changed since it was observed,
// even if the change comes from this response, which may change the XR's references. Crossplane then
// also discards the events and conditions, and calls again. So each written status follows from the
// previous one, and its events are emitted once. It must be called after Status.
func (r Response) IfUnchanged(req *fnv1.RunFunctionRequest) {
	version := req.GetObserved().GetComposite().GetResource().GetFields()["metadata"].GetStructValue().GetFields()["resourceVersion"].GetStringValue()
	if version == "" {
		return
	}
	r.composite().GetResource().Fields["metadata"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"resourceVersion": structpb.NewStringValue(version),
	}})
}

// Ready sets whether the XR is ready, regardless of its composed resources.
func (r Response) Ready(ready bool) {
	r.composite().Ready = readiness(ready)
}

// Compose adds a desired resource. Zero metadata and the status are omitted.
func (r Response) Compose(name string, obj any, ready bool) error {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	delete(m, "status")
	return r.compose(name, m, ready)
}

// ComposeWithStatus composes a resource whose kind has no subresource status. It is ready.
func (r Response) ComposeWithStatus(name string, obj any) error {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	return r.compose(name, m, true)
}

func (r Response) compose(name string, m map[string]any, ready bool) error {
	dropNulls(m)
	s, err := structpb.NewStruct(m)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	if r.Desired.Resources == nil {
		r.Desired.Resources = map[string]*fnv1.Resource{}
	}
	r.Desired.Resources[name] = &fnv1.Resource{Resource: s, Ready: readiness(ready)}
	return nil
}

// Events emits events on the XR.
func (r Response) Events(events ...plan.Event) {
	for _, e := range events {
		severity := fnv1.Severity_SEVERITY_NORMAL
		if e.Warning {
			severity = fnv1.Severity_SEVERITY_WARNING
		}
		r.Results = append(r.Results, &fnv1.Result{
			Severity: severity,
			Message:  e.Message,
			Reason:   ptr.To(e.Reason),
			Target:   fnv1.Target_TARGET_COMPOSITE.Enum(),
		})
	}
}

// SetConditions sets conditions of the XR.
func (r Response) SetConditions(conditions ...plan.Condition) {
	statuses := map[string]fnv1.Status{
		"True":  fnv1.Status_STATUS_CONDITION_TRUE,
		"False": fnv1.Status_STATUS_CONDITION_FALSE,
	}
	for _, c := range conditions {
		status, ok := statuses[c.Status]
		if !ok {
			status = fnv1.Status_STATUS_CONDITION_UNKNOWN
		}
		out := &fnv1.Condition{Type: c.Type, Status: status, Reason: c.Reason, Target: fnv1.Target_TARGET_COMPOSITE.Enum()}
		if c.Message != "" {
			out.Message = ptr.To(c.Message)
		}
		r.RunFunctionResponse.Conditions = append(r.RunFunctionResponse.Conditions, out)
	}
}

// ReportToClaim copies the conditions and events to the claim of the XR as well.
func (r Response) ReportToClaim() {
	for _, c := range r.RunFunctionResponse.Conditions {
		c.Target = fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum()
	}
	for _, e := range r.Results {
		e.Target = fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum()
	}
}

// Report sets the status of an XR of the kind, and the remaining parts of a planner's report.
func (r Response) Report(kind schema.GroupVersionKind, status any, report plan.Report) error {
	r.Ready(report.Ready)
	r.SetConditions(report.Conditions...)
	r.Events(report.Events...)
	r.CallAgain(report.CallAgain)
	apiVersion, name := kind.ToAPIVersionAndKind()
	return r.Status(apiVersion, name, status)
}

// RequireByName requires one resource. The namespace is empty for cluster scope.
func (r Response) RequireByName(requirement, apiVersion, kind, namespace, name string) {
	s := &fnv1.ResourceSelector{
		ApiVersion: apiVersion,
		Kind:       kind,
		Match:      &fnv1.ResourceSelector_MatchName{MatchName: name},
	}
	r.require(requirement, namespace, s)
}

// RequireByLabels requires all resources with the labels.
func (r Response) RequireByLabels(requirement, apiVersion, kind, namespace string, labels map[string]string) {
	s := &fnv1.ResourceSelector{
		ApiVersion: apiVersion,
		Kind:       kind,
		Match:      &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: labels}},
	}
	r.require(requirement, namespace, s)
}

// CallAgain requests the next call after d at the latest. The shortest of all requests counts.
func (r Response) CallAgain(d time.Duration) {
	if d < plan.Soonest {
		d = plan.Soonest
	}
	if r.Meta.GetTtl() == nil || d < r.Meta.GetTtl().AsDuration() {
		r.Meta.Ttl = durationpb.New(d)
	}
}

func (r Response) require(requirement, namespace string, s *fnv1.ResourceSelector) {
	if namespace != "" {
		s.Namespace = ptr.To(namespace)
	}
	if r.Requirements == nil {
		r.Requirements = &fnv1.Requirements{}
	}
	if r.Requirements.Resources == nil {
		r.Requirements.Resources = map[string]*fnv1.ResourceSelector{}
	}
	r.Requirements.Resources[requirement] = s
}

func (r Response) composite() *fnv1.Resource {
	if r.Desired.Composite == nil {
		r.Desired.Composite = &fnv1.Resource{}
	}
	return r.Desired.Composite
}

func readiness(ready bool) fnv1.Ready {
	if ready {
		return fnv1.Ready_READY_TRUE
	}
	return fnv1.Ready_READY_FALSE
}

func toStruct(base map[string]any, key string, value any) (*structpb.Struct, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return nil, err
	}
	base[key] = m
	dropNulls(base)
	return structpb.NewStruct(base)
}

// dropNulls removes the values that the API types encode although they are unset, such as
// creationTimestamp: with server-side apply, a null is a value that is applied.
func dropNulls(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			dropNulls(v)
		case []any:
			for _, e := range v {
				if em, ok := e.(map[string]any); ok {
					dropNulls(em)
				}
			}
		}
	}
}
