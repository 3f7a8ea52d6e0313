// Package kubevirttest is a fake of the calls of an API server that list VirtualMachines,
// DataVolumes and PersistentVolumeClaims. A function provides these, so that a test or a simulator
// of the cluster keeps the state.
//
// Sources of the formats: https://kubernetes.io/docs/reference/using-api/api-concepts/ for
// lists in chunks, https://kubernetes.io/docs/reference/access-authn-authz/authentication/ for
// bearer tokens, k8s.io/apimachinery/pkg/api/errors for the Status objects of errors, and
// https://kubevirt.io/api-reference/ and
// https://github.com/kubevirt/containerized-data-importer/blob/main/doc/datavolumes.md for the
// kinds.
package kubevirttest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/test/fakes"
)

// kinds that the Server has, by their resources.
var kinds = map[schema.GroupResource]schema.GroupVersionKind{
	{Group: "kubevirt.io", Resource: "virtualmachines"}: {Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"},
	{Group: "cdi.kubevirt.io", Resource: "datavolumes"}: {Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"},
	{Resource: "persistentvolumeclaims"}:                {Version: "v1", Kind: "PersistentVolumeClaim"},
}

// A User of the API server.
type User struct {
	Name string
	// Namespaces whose objects the user may list. If there is none, the user may list those of the
	// whole cluster.
	Namespaces []string
}

// Options of a Server.
type Options struct {
	// State returns the objects of a kind, such as VirtualMachine. It is called once per list: all
	// chunks have the state of the first one.
	State func(kind string) []unstructured.Unstructured
	// Users by their bearer tokens, at the time of each request.
	Users func() map[string]User
	// Without are kinds that the cluster does not have, such as DataVolume.
	Without []string
	// RateLimit is how many calls may be made at once. After each Refill, one more may be made.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
}

// A Server is the API server. Calls are counted, and broken by faults, as "GET " and the
// resource, such as "GET virtualmachines". The Code of a Fault is the reason of its Status.
type Server struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu        sync.Mutex
	bucket    fakes.Bucket
	version   int64
	snapshots map[int64][]unstructured.Unstructured
}

// New returns a Server.
func New(o Options) *Server {
	return &Server{opts: o, version: 1000, snapshots: map[int64][]unstructured.Unstructured{}}
}

// Compact deletes the state of earlier lists, as etcd does after some minutes: their next chunks
// are refused.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots = map[int64][]unstructured.Unstructured{}
}

// ServeHTTP serves lists.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	kind, resource, namespace, ok := parse(req.URL.Path)
	call := req.Method + " " + resource.Resource
	s.Note(call)
	user, known := s.opts.Users()[strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")]
	if !known {
		fail(w, kerrors.NewUnauthorized("Unauthorized"))
		return
	}
	if !s.admit() {
		w.Header().Set("Retry-After", "1")
		fail(w, kerrors.NewTooManyRequests("Too many requests, please try again later.", 1))
		return
	}
	if f := s.Of(call, "", nil); f != nil {
		breakWith(w, f)
		return
	}
	switch {
	case !ok || req.Method != http.MethodGet || slices.Contains(s.opts.Without, kind.Kind):
		fail(w, kerrors.NewGenericServerResponse(http.StatusNotFound, req.Method, schema.GroupResource{}, "", "404 page not found", 0, true))
	case len(user.Namespaces) > 0 && !slices.Contains(user.Namespaces, namespace):
		fail(w, forbidden(user, resource, namespace))
	default:
		s.list(w, req, kind, namespace)
	}
}

func (s *Server) admit() bool {
	if s.opts.RateLimit == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ok, _, _ := s.bucket.Take(time.Now(), s.opts.RateLimit, s.opts.Refill)
	return ok
}

func breakWith(w http.ResponseWriter, f *fakes.Fault) {
	if f.Refused || f.Lost {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	fail(w, &kerrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(f.Status), Reason: metav1.StatusReason(f.Code), Message: f.Message,
	}})
}

// forbidden in the words of the authorizer of RBAC.
func forbidden(u User, r schema.GroupResource, namespace string) error {
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}
	return kerrors.NewForbidden(r, "", fmt.Errorf("User %q cannot list resource %q in API group %q %s", u.Name, r.Resource, r.Group, where)) // The API's words.
}

func fail(w http.ResponseWriter, err error) {
	var status kerrors.APIStatus
	if !errors.As(err, &status) {
		panic(err)
	}
	body := status.Status()
	body.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	fakes.AnswerJSON(w, int(body.Code), body)
}

// parse the path of a list: /api/v1 or /apis/GROUP/VERSION, then namespaces/NAMESPACE if it is
// of one, and the resource.
func parse(path string) (kind schema.GroupVersionKind, r schema.GroupResource, namespace string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return kind, r, "", false
	}
	if len(parts) == 3 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	r.Resource = parts[0]
	kind, ok = kinds[r]
	return kind, r, namespace, ok && kind.Version == version && len(parts) == 1
}

// list one chunk.
func (s *Server) list(w http.ResponseWriter, req *http.Request, kind schema.GroupVersionKind, namespace string) {
	q := req.URL.Query()
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		fail(w, kerrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err)))
		return
	}
	field, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		fail(w, kerrors.NewBadRequest(err.Error()))
		return
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil && q.Get("limit") != "" || limit < 0 {
		fail(w, kerrors.NewBadRequest(fmt.Sprintf("invalid limit %q", q.Get("limit"))))
		return
	}
	objects, from, version, err := s.snapshot(kind.Kind, q.Get("continue"))
	if err != nil {
		fail(w, err)
		return
	}
	out := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{}}
	out.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	out.SetResourceVersion(strconv.FormatInt(version, 10))
	for _, o := range objects {
		if key(o) <= from || namespace != "" && o.GetNamespace() != namespace || !selector.Matches(labels.Set(o.GetLabels())) ||
			!field.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}) {
			continue
		}
		if limit > 0 && len(out.Items) == limit {
			out.SetContinue(continueAfter(version, out.Items[limit-1]))
			s.keep(version, objects)
			break
		}
		o.SetGroupVersionKind(kind)
		out.Items = append(out.Items, o)
	}
	fakes.AnswerJSON(w, http.StatusOK, out)
}

func key(o unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }

// A token is that of k8s.io/apiserver/pkg/storage/continue.go.
type token struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`
	StartKey        string `json:"start"`
}

func continueAfter(version int64, last unstructured.Unstructured) string {
	b, err := json.Marshal(token{APIVersion: "meta.k8s.io/v1", ResourceVersion: version, StartKey: key(last) + "\u0000"})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// maxSnapshots is the number of lists whose next chunks can be served.
const maxSnapshots = 64

// keep the objects of a list for its next chunks.
func (s *Server) keep(version int64, objects []unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots[version] = objects
	for v := range s.snapshots {
		if v <= version-maxSnapshots {
			delete(s.snapshots, v)
		}
	}
}

// snapshot returns the objects of a list, sorted by namespace and name, and the key after
// which the chunk begins.
func (s *Server) snapshot(kind, more string) ([]unstructured.Unstructured, string, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more == "" {
		s.version++
		objects := slices.Clone(s.opts.State(kind))
		slices.SortFunc(objects, func(a, b unstructured.Unstructured) int { return strings.Compare(key(a), key(b)) })
		return objects, "", s.version, nil
	}
	var t token
	b, err := base64.RawURLEncoding.DecodeString(more)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return nil, "", 0, kerrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	objects, ok := s.snapshots[t.ResourceVersion]
	if !ok {
		return nil, "", 0, kerrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.")
	}
	return objects, strings.TrimSuffix(t.StartKey, "\u0000"), t.ResourceVersion, nil
}
