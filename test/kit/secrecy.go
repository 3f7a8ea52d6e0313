package kit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Kinds that are read by more people than Secrets are. None may ever tell of what is in
// one.
var public = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Event"},
	{Version: "v1", Kind: "Node"},
	{Version: "v1", Kind: "ConfigMap"},
	{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"},
	machinev1alpha1.MachineDeploymentGroupVersionKind,
	machinev1alpha1.MachineSetGroupVersionKind,
	machinev1alpha1.MachineGroupVersionKind,
	machinev1alpha1.SchemeGroupVersion.WithKind("MachineClass"),
	clusterv1alpha1.ProviderConfigGroupVersionKind,
	clusterv1alpha1.ClusterProviderConfigGroupVersionKind,
	{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"},
	{Group: "local.drover.dev", Version: "v1alpha1", Kind: "ClusterProviderConfig"},
}

// A Witness sees every Secret of a run, and every version of what is public.
type Witness struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu      sync.Mutex
	secrets map[string]string          // what must not be told, to where it is kept
	tokens  map[string]map[string]bool // join tokens by namespace
	said    *os.File                   // all that is public
	objects int
}

func newWitness(dir string, clusters ...*Cluster) (*Witness, error) {
	said, err := os.Create(filepath.Join(dir, "said.json"))
	if err != nil {
		return nil, err
	}
	w := &Witness{secrets: map[string]string{}, tokens: map[string]map[string]bool{}, said: said}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	for _, c := range clusters {
		w.all.Go(func() {
			follow(ctx, c, &corev1.SecretList{}, func(o client.Object) { w.keep(o.(*corev1.Secret)) })
		})
		for _, gvk := range public {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(gvk)
			w.all.Go(func() { follow(ctx, c, l, w.hear) })
		}
	}
	return w, nil
}

// follow all versions of the objects of a kind. One that is not served yet, or not in
// this cluster, is tried again.
func follow(ctx context.Context, c *Cluster, l client.ObjectList, see func(client.Object)) {
	for ctx.Err() == nil {
		w, err := c.Client.Watch(ctx, l)
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			continue
		}
		for e := range w.ResultChan() {
			if o, ok := e.Object.(client.Object); ok && e.Type != watch.Bookmark && e.Type != watch.Error {
				see(o)
			}
		}
		w.Stop()
	}
}

func (w *Witness) keep(s *corev1.Secret) {
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

// secretsIn a value of a Secret: parts that nothing public has by chance.
func secretsIn(key string, value []byte) []string {
	var out []string
	add := func(s string) {
		// Of a token the last part is secret: <id>.<secret>, or a JWT's signature.
		if i := strings.LastIndexByte(s, '.'); i >= 0 {
			s = s[i+1:]
		}
		if len(s) >= 12 {
			out = append(out, s)
		}
	}
	switch key {
	case "token", "token-secret", "password":
		add(string(value))
	}
	for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			add(base64.StdEncoding.EncodeToString(block.Bytes)[:60])
			add(base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))[80:160])
		}
	}
	credentials := struct{ Token string }{}
	if json.Unmarshal(value, &credentials) == nil {
		add(credentials.Token)
	}
	if kc, err := clientcmd.Load(value); err == nil {
		for _, u := range kc.AuthInfos {
			add(u.Token)
			add(u.Password)
			out = append(out, secretsIn("client-key-data", u.ClientKeyData)...)
		}
	}
	return out
}

func (w *Witness) hear(o client.Object) {
	b, err := json.Marshal(o)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects++
	_, _ = w.said.Write(append(b, '\n'))
}

// Tokens are the join tokens that were ever given out for Machines of a namespace.
func (w *Witness) Tokens(namespace string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.tokens[namespace]))
}

// Leaks ends the watch, and says where anything that is in a Secret was told: in an
// object, an event, or one of the logs.
func (p *Plane) Leaks() []string {
	w := p.Witness
	w.stop()
	w.all.Wait()
	if len(w.secrets) == 0 || w.objects == 0 {
		return []string{fmt.Sprintf("%d secrets and %d versions of objects were seen: this shows nothing", len(w.secrets), w.objects)}
	}
	files := []string{w.said.Name()}
	if err := filepath.WalkDir(filepath.Join(p.Dir, "logs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}); err != nil {
		return []string{err.Error()}
	}
	var leaks []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return []string{err.Error()}
		}
		leaks = append(leaks, w.leaksIn(file, text)...)
	}
	fmt.Fprintf(os.Stderr, "looked for %d secrets in %d versions of objects and %d logs\n", len(w.secrets), w.objects, len(files)-1)
	return leaks
}

func (w *Witness) leaksIn(file string, text []byte) []string {
	var out []string
	for secret, where := range w.secrets {
		for _, form := range forms(secret) {
			if i := bytes.Index(text, []byte(form)); i >= 0 {
				out = append(out, fmt.Sprintf("%s tells %s: ...%s[it]", file, where, text[max(0, i-200):i]))
				break
			}
		}
	}
	return out
}

// forms in which a secret may be told: as it is, and within a text that is encoded as
// base64, where it may begin at any of three places.
func forms(secret string) []string {
	out := []string{secret}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		from, to := 0, len(encoded)-2
		if shift > 0 {
			from = shift + 1
		}
		out = append(out, encoded[from:to])
	}
	return out
}
