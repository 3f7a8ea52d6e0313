package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// auditLevel is the level of the audit log that a Witness reads: with the bodies of requests.
const auditLevel = "Request"

// kindsPeriod is the time between two questions for all kinds while no CRD changes.
const kindsPeriod = 30 * time.Second

var (
	secretResource = schema.GroupResource{Resource: "secrets"}
	kindResource   = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// A Witness records a run: all Secrets, and every version of all other objects that the API
// servers serve. Leaks compares the two.
type Witness struct {
	dir      string // of the records
	clusters []*recorded
	stop     context.CancelFunc
	all      sync.WaitGroup

	mu      sync.Mutex
	secrets map[string]string          // parts of Secrets that no other object may have, with their origins
	tokens  map[string]map[string]bool // join tokens by namespace
	objects map[string]int             // versions of objects that were recorded, by file
	watched map[string]bool            // files of kinds whose watch was accepted
	faults  []string                   // errors of the Witness itself
}

// A recorded cluster.
type recorded struct {
	*Cluster
	name     string
	audit    string // file of the audit log
	config   *rest.Config
	http     *http.Client
	watching map[schema.GroupResource]bool
	// kinds has a value after a CRD changed.
	kinds chan struct{}
}

// A record is a file with lines of JSON or text. objects returns the objects in a line that may
// have user data.
type record struct {
	file    string
	objects func(line map[string]any) (schema.GroupResource, []map[string]any)
}

func newWitness(ctx context.Context, p *Plane) (*Witness, error) {
	w := &Witness{
		dir: filepath.Join(p.Dir, "witness"), secrets: map[string]string{},
		tokens: map[string]map[string]bool{}, objects: map[string]int{}, watched: map[string]bool{},
	}
	life, stop := context.WithCancel(context.Background())
	w.stop = stop
	status, err := p.Status(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.record(life, "control", p.Control, status.Control.AuditLog); err != nil {
		return nil, err
	}
	if p.Target == nil {
		return w, nil
	}
	return w, w.record(life, "target", p.Target, status.Target.AuditLog)
}

// record a cluster until ctx ends.
func (w *Witness) record(ctx context.Context, name string, cluster *Cluster, audit string) error {
	if audit == "" {
		return fmt.Errorf("cluster %s has no audit log", name)
	}
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		return err
	}
	c := &recorded{Cluster: cluster, name: name, audit: audit, config: config, watching: map[schema.GroupResource]bool{}, kinds: make(chan struct{}, 1)}
	c.config.QPS = -1
	if c.http, err = rest.HTTPClientFor(c.config); err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, c.http)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(w.dir, name), 0o700); err != nil {
		return err
	}
	w.clusters = append(w.clusters, c)
	w.all.Go(func() {
		// The API server serves a kind some time after its CRD is established. It sends all kinds at once, which takes
		// too long to ask for it all the time.
		again := time.NewTicker(kindsPeriod)
		defer again.Stop()
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			w.discover(ctx, c, d)
			select {
			case <-ctx.Done():
			case <-c.kinds:
			case <-again.C:
			}
		}, time.Second)
	})
	return nil
}

// discover the served kinds, and watch the new ones.
func (w *Witness) discover(ctx context.Context, c *recorded, d discovery.DiscoveryInterface) {
	// An error concerns some groups, such as an APIService without a backend. The lists of all
	// other groups are returned with it.
	lists, _ := d.ServerPreferredResources()
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range l.APIResources {
			gvr := gv.WithResource(r.Name)
			if !slices.Contains(r.Verbs, "watch") || strings.Contains(r.Name, "/") || c.watching[gvr.GroupResource()] {
				continue
			}
			c.watching[gvr.GroupResource()] = true
			w.all.Go(func() { w.watch(ctx, c, gvr) })
		}
	}
}

// fileOf the record of a kind.
func (w *Witness) fileOf(c *recorded, r schema.GroupResource) string {
	return filepath.Join(w.dir, c.name, r.String()+".json")
}

// watch all objects of a kind, including the existing ones. The stream is recorded without
// decoding, which would take longer than the API server takes to send it.
func (w *Witness) watch(ctx context.Context, c *recorded, r schema.GroupVersionResource) {
	see, name := w.keep, w.fileOf(c, r.GroupResource())
	if r.GroupResource() != secretResource {
		file, err := os.Create(name)
		if err != nil {
			w.fault(err)
			return
		}
		defer func() { _ = file.Close() }()
		see = func(line []byte) error {
			_, err := file.Write(line)
			return err
		}
	}
	for ctx.Err() == nil {
		accepted := func() {
			w.mu.Lock()
			w.watched[name] = true
			w.mu.Unlock()
		}
		if err := stream(ctx, c, r, accepted, func(line []byte) error {
			w.mu.Lock()
			w.objects[name]++
			w.mu.Unlock()
			if r.GroupResource() == kindResource {
				select {
				case c.kinds <- struct{}{}:
				default: // It is known already.
				}
			}
			return see(line)
		}); err != nil && ctx.Err() == nil {
			w.fault(fmt.Errorf("%s: %s: %w", c.name, r.GroupResource(), err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// stream the events of a watch that the API server accepts, until it ends the watch.
func stream(ctx context.Context, c *recorded, r schema.GroupVersionResource, accepted func(), see func(line []byte) error) error {
	path := "/apis/" + r.Group
	if r.Group == "" {
		path = "/api"
	}
	u := c.config.Host + path + "/" + url.PathEscape(r.Version) + "/" + r.Resource + "?watch=true"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	rsp, err := c.http.Do(req)
	if err != nil {
		return nil // The API server is restarting.
	}
	defer func() { _ = rsp.Body.Close() }()
	if rsp.StatusCode != http.StatusOK {
		return nil // The CRD is not established yet, or was deleted.
	}
	accepted()
	lines := bufio.NewReader(rsp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // The watch has ended.
		}
		if err := see(line); err != nil {
			return err
		}
	}
}

func (w *Witness) fault(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, "the Witness failed: "+err.Error())
}

// keep the secrets of the Secret in an event of a watch.
func (w *Witness) keep(line []byte) error {
	e := struct {
		Type   string
		Object corev1.Secret
	}{}
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("%w: %.100s", err, line)
	}
	if e.Type != "ERROR" {
		w.keepSecret(&e.Object)
	}
	return nil
}

func (w *Witness) keepSecret(s *corev1.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, value := range s.Data {
		for _, secret := range secretsIn(key, value) {
			w.secrets[secret] = fmt.Sprintf("key %s of Secret %s/%s", key, s.Namespace, s.Name)
		}
	}
	if token, ok := s.Data[clusterv1alpha1.ConnectionToken]; ok && s.Type == "connection.crossplane.io/v1alpha1" {
		if w.tokens[s.Namespace] == nil {
			w.tokens[s.Namespace] = map[string]bool{}
		}
		w.tokens[s.Namespace][string(token)] = true
	}
}

// Tokens are all join tokens that were created for Machines of a namespace.
func (w *Witness) Tokens(namespace string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.tokens[namespace]))
}

// Versions is the number of recorded versions of objects of a kind in the control cluster.
func (w *Witness) Versions(r schema.GroupResource) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[w.fileOf(w.clusters[0], r)]
}

// Finds reports whether a text has a part of a recorded Secret.
func (w *Witness) Finds(text []byte) bool {
	w.mu.Lock()
	s := newSearch(w.secrets)
	w.mu.Unlock()
	return len(s.find(text)) > 0
}

// Leaks ends the record, and returns all places of Secrets' parts: in a version of an object of
// another kind, in a request of the audit logs, or in the log of a component. First it leaks a
// secret into each cluster itself: a Witness that does not find this secret would not find any
// other one.
func (p *Plane) Leaks() []string {
	w := p.Witness
	canaries, err := w.plantCanaries()
	w.stop()
	w.all.Wait()
	if err != nil {
		return []string{err.Error()}
	}
	records, err := p.records()
	if err != nil {
		return []string{err.Error()}
	}
	leaks := w.faults
	s := newSearch(w.secrets)
	seen := map[string]bool{}
	size := int64(0)
	for _, r := range records {
		info, err := os.Stat(r.file)
		if err != nil {
			return []string{err.Error()}
		}
		size += info.Size()
		found, err := leaksIn(r, s)
		if err != nil {
			return []string{err.Error()}
		}
		for secret, before := range found {
			if canaries[secret] {
				seen[r.file] = true
				continue
			}
			leaks = append(leaks, fmt.Sprintf("%s has %s: ...%s[it]", strings.TrimPrefix(r.file, p.Dir+"/"), w.secrets[secret], before))
		}
	}
	for _, c := range w.clusters {
		for r := range c.watching {
			if !w.watched[w.fileOf(c, r)] {
				leaks = append(leaks, fmt.Sprintf("no watch of %s in cluster %s was accepted: its objects were not seen", r, c.name))
			}
		}
		for _, file := range []string{w.fileOf(c, canaryResource), c.audit} {
			if !seen[file] {
				leaks = append(leaks, fmt.Sprintf("%s does not have the secret that was leaked into it: its record shows nothing", file))
			}
		}
	}
	versions := 0
	for _, n := range w.objects {
		versions += n
	}
	fmt.Fprintf(os.Stderr, "looked for %d secrets in %d versions of objects: %d records with %d MB\n", len(w.secrets), versions, len(records), size>>20)
	return leaks
}

var canaryResource = schema.GroupResource{Resource: "configmaps"}

// plantCanaries creates a Secret in each cluster and a ConfigMap that leaks it, and waits until
// both are recorded. Watches deliver in order per kind, so all earlier events are recorded by
// then.
func (w *Witness) plantCanaries() (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Limit())
	defer cancel()
	planted := map[string]bool{}
	for _, c := range w.clusters {
		secret := rand.String(32)
		meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "leaked-on-purpose-"}
		for _, o := range []client.Object{
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"token": []byte(secret)}},
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"leak": secret}},
		} {
			if err := c.Client.Create(ctx, o); err != nil {
				return nil, err
			}
		}
		planted[secret] = true
		if err := wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
			w.mu.Lock()
			_, kept := w.secrets[secret]
			w.mu.Unlock()
			b, err := os.ReadFile(w.fileOf(c, canaryResource))
			return kept && strings.Contains(string(b), secret), ignoreNotExist(err)
		}); err != nil {
			return nil, fmt.Errorf("a Secret and a ConfigMap of cluster %s are not recorded: %w", c.name, err)
		}
	}
	return planted, nil
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// records of the run.
func (p *Plane) records() ([]record, error) {
	var out []record
	for _, c := range p.Witness.clusters {
		for r := range c.watching {
			if r == secretResource {
				continue
			}
			out = append(out, record{p.Witness.fileOf(c, r), func(line map[string]any) (schema.GroupResource, []map[string]any) {
				object, _ := line["object"].(map[string]any)
				return r, []map[string]any{object}
			}})
		}
		out = append(out, record{c.audit, audited})
	}
	logs := 0
	err := filepath.WalkDir(filepath.Join(p.Dir, "logs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, record{file: path})
			logs++
		}
		return err
	})
	if err == nil && logs == 0 {
		err = errors.New("there are no logs")
	}
	return out, err
}

// audited returns the bodies of an entry of an audit log.
func audited(entry map[string]any) (schema.GroupResource, []map[string]any) {
	of, _ := entry["objectRef"].(map[string]any)
	group, _ := of["apiGroup"].(string)
	resource, _ := of["resource"].(string)
	request, _ := entry["requestObject"].(map[string]any)
	response, _ := entry["responseObject"].(map[string]any)
	return schema.GroupResource{Group: group, Resource: resource}, []map[string]any{request, response}
}

// leaksIn returns the secrets in a record, each with the text before it.
func leaksIn(r record, s *search) (map[string]string, error) {
	file, err := os.Open(r.file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	found := map[string]string{}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		leaks := s.find(line)
		if len(leaks) > 0 && r.objects != nil {
			leaks = s.find(withoutWhatMayBe(line, r))
		}
		maps.Copy(found, leaks)
		if err != nil {
			return found, nil
		}
	}
}

// withoutWhatMayBe removes the parts of a line that may have secrets: the bodies of requests for
// Secrets, which audit policies leave out, and the fields in PlainUserData.
func withoutWhatMayBe(line []byte, r record) []byte {
	fields := map[string]any{}
	if err := json.Unmarshal(line, &fields); err != nil {
		return line
	}
	resource, objects := r.objects(fields)
	if resource == secretResource {
		delete(fields, "requestObject")
		delete(fields, "responseObject")
	}
	for _, f := range PlainUserData {
		if f.Resource != resource {
			continue
		}
		for _, o := range objects {
			unstructured.RemoveNestedField(o, f.Path...)
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return line
	}
	return b
}
