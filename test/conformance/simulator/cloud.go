package simulator

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit/guest"
	"github.com/drover-dev/drover/test/kit/terraformcli"
)

// A cloud has the VMs and companions that providers created. It keeps them in memory.
type cloud struct {
	*Description
	host   *guest.Host
	client client.Client

	mu sync.Mutex
	// things by kind and external name.
	things map[string]*thing
	// made is the number of all things that were ever created.
	made int
	// refused is the error class with which a VM is refused, by the key of its Machine.
	refused map[types.NamespacedName]fn.ErrorCode
	// torn describes the attempts to delete a thing while the VM of its Machine used it, by the
	// namespace of the Machine.
	torn map[string][]string
	// failing are the keys of the Machines whose VMs the cloud accepts and cannot place.
	failing map[types.NamespacedName]bool
	// asked is how often the creation of a VM was requested, by the key of its Machine.
	asked map[types.NamespacedName]int
	// slow is how long VMs take to start, by namespace, for the namespaces with slow VMs.
	slow map[string]time.Duration
	// passwords that the cloud accepts, by the name of the ProviderConfig.
	passwords map[string]string
}

// A thing is the counterpart of one managed resource at the cloud.
type thing struct {
	kind    *Resource
	machine types.NamespacedName
	// facts are the values that templates may use.
	facts map[string]any
	// place is the part of the cloud that has the thing: see [Resource.Place].
	place string
	tags  map[string]string
	// userData as the VM reads it.
	userData []byte
	guest    *guest.Guest
	// waits is the refusal that keeps a created VM from running, nil if there is none.
	waits *Refusal
	// startsUntil is the time from which the VM runs.
	startsUntil time.Time
	createdAt   time.Time
	lost        bool
	interrupted bool
	// failed means that the VM was accepted, could not be placed, and stays.
	failed bool
}

// addresses that templates may name.
var addresses = []string{"ip", "secondIP", "ipv6"}

// hasNoAddress sets all addresses to "", as for a VM that never runs.
func (t *thing) hasNoAddress() {
	for _, key := range addresses {
		t.facts[key] = ""
	}
}

// isStarting reports whether the VM does not run yet.
func (t *thing) isStarting(now time.Time) bool { return now.Before(t.startsUntil) }

// A CloudVM is a VM as the cloud has it.
type CloudVM struct {
	ID, Name string
	Tags     map[string]string
	UserData []byte
	// ForProvider is the spec.forProvider that the VM was made from.
	ForProvider map[string]any
	State       State
	CreatedAt   time.Time
}

// A State of a VM at the cloud, which its provider may hide.
type State string

// States of VMs.
const (
	// Starting is a VM that is created and does not run yet.
	Starting State = "Starting"
	// Waiting is a VM that is created, and for which there is no room yet.
	Waiting State = "Waiting"
	Running State = "Running"
	// Interrupted is a spot VM that the cloud stopped.
	Interrupted State = "Interrupted"
	// Failed is a VM that could not be placed, and stays.
	Failed State = "Failed"
)

// A Companion is a resource beside the VMs, such as a network interface.
type Companion struct {
	Kind, Name string
	// ForProvider is the spec.forProvider that it was made from.
	ForProvider map[string]any
	// Machine is the Machine that it was made for. UsedBy is the name of the VM of that Machine, ""
	// if the cloud has none.
	Machine, UsedBy string
}

func newCloud(d *Description, host *guest.Host, c client.Client) *cloud {
	return &cloud{
		Description: d, host: host, client: c, things: map[string]*thing{},
		refused: map[types.NamespacedName]fn.ErrorCode{}, failing: map[types.NamespacedName]bool{},
		asked: map[types.NamespacedName]int{}, slow: map[string]time.Duration{}, torn: map[string][]string{}, passwords: map[string]string{},
	}
}

// machineOf returns the key of the Machine of a managed resource that Drover composed.
func machineOf(m *managedResource) types.NamespacedName {
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetLabels()[machinev1alpha1.LabelMachine]}
}

// create creates the thing that a managed resource describes, and returns its external name.
func (c *cloud) create(ctx context.Context, kind *Resource, m *managedResource) (string, error) {
	m, err := c.applied(ctx, m)
	if err != nil {
		return "", err
	}
	t := &thing{kind: kind, machine: machineOf(m), facts: c.newFacts(m)}
	if kind.AfterVM && !c.hasVM(t.machine) {
		return "", fmt.Errorf("%s %s depends on a VM that does not exist", kind.Kind, m.GetName())
	}
	if kind.VM != nil {
		c.mu.Lock()
		c.asked[t.machine]++
		c.mu.Unlock()
	}
	if r := c.refusal(t); r != nil && r.Error != "" {
		return "", fmt.Errorf("%s", r.Error)
	} else if r != nil {
		t.waits = r
	}
	id, err := c.nameThing(kind, m, t.facts)
	if err != nil {
		return "", err
	}
	if t.place, err = placeOf(kind, m); err != nil {
		return "", err
	}
	if kind.VM != nil {
		if err := c.readVM(ctx, t, m); err != nil {
			return "", err
		}
		if c.isFailing(t) {
			return "", c.failToPlace(ctx, t)
		}
		if t.waits == nil {
			if err := c.boot(ctx, t); err != nil {
				return "", err
			}
		}
	}
	c.add(t)
	if kind.VM != nil && kind.Starting == nil {
		err = c.awaitStart(ctx, t)
	}
	return id, err
}

func (c *cloud) add(t *thing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.createdAt = time.Now()
	c.things[key(t.kind, t.facts["id"].(string))] = t
}

// startTime is the shortest time that a VM takes to start. It is longer than a provider needs to
// observe the VM for the first time, as at most clouds.
const startTime = 2 * time.Second

// awaitStart waits until the VM runs, as most Terraform providers do.
func (c *cloud) awaitStart(ctx context.Context, t *thing) error {
	timer := time.NewTimer(time.Until(t.startsUntil))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// applied returns the managed resource as the provider passes it to the cloud.
func (c *cloud) applied(ctx context.Context, m *managedResource) (*managedResource, error) {
	if c.Runtime != TerraformCLI {
		return m, nil
	}
	arguments, _, err := unstructured.NestedMap(m.Object, "spec", "forProvider")
	if err != nil {
		return nil, err
	}
	if cli := terraform(); cli != nil {
		arguments, err = cli.Apply(ctx, arguments)
	} else {
		arguments, err = terraformcli.Evaluate(arguments)
	}
	if err != nil {
		return nil, err
	}
	out := &managedResource{Unstructured: *m.DeepCopy()}
	return out, unstructured.SetNestedMap(out.Object, arguments, "spec", "forProvider")
}

// terraform finds the Terraform CLI in PATH. It returns nil if there is none: then Terraform's
// parser evaluates the fields.
var terraform = sync.OnceValue(terraformcli.Find)

// HasTerraform reports whether the real Terraform evaluates the fields of providers that run it.
func HasTerraform() bool { return terraform() != nil }

func key(kind *Resource, id string) string { return kind.Kind + " " + id }

func (c *cloud) newFacts(m *managedResource) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	return map[string]any{
		"vm": m.DeepCopy().Object, "name": m.GetName(), "number": c.made, "hex": fmt.Sprintf("%017x", c.made),
		"publicIP": newPublicIP(),
	}
}

// publicIPs counts the public addresses of all clouds. Clouds share a target cluster, where an address
// that two Machines have proves nothing.
var publicIPs atomic.Uint32

// newPublicIP returns an address of 198.18.0.0/16 that no other thing of any cloud has.
func newPublicIP() string {
	n := publicIPs.Add(1)
	return fmt.Sprintf("198.18.%d.%d", n>>8&0xff, n&0xff)
}

// nameThing sets the external name and the host name of a thing as the cloud does, and returns the
// external name.
func (c *cloud) nameThing(kind *Resource, m *managedResource, facts map[string]any) (string, error) {
	id, err := m.GetName(), error(nil)
	if kind.ExternalName != "" {
		if id, err = text(kind.ExternalName, facts); err != nil {
			return "", fmt.Errorf("externalName: %w", err)
		}
	}
	facts["id"] = id
	if kind.VM != nil && kind.VM.Name != "" {
		if facts["name"], err = text(kind.VM.Name, facts); err != nil {
			return "", fmt.Errorf("vm.name: %w", err)
		}
	}
	return id, nil
}

// placeOf returns the place that a managed resource names.
func placeOf(kind *Resource, m *managedResource) (string, error) {
	place, err := text(kind.Place, map[string]any{"vm": m.Object})
	if err != nil {
		return "", fmt.Errorf("place: %w", err)
	}
	return place, nil
}

// refusal returns the refusal of a VM, nil if it is not refused.
func (c *cloud) refusal(t *thing) *Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	code, ok := c.refused[t.machine]
	if !ok || t.kind.VM == nil {
		return nil
	}
	r := c.Refusals[code]
	return &r
}

// readVM reads tags and user data from the fields of a managed resource that the cloud reads.
func (c *cloud) readVM(ctx context.Context, t *thing, m *managedResource) error {
	var err error
	if t.tags, err = readTags(t.kind.VM.Tags, m); err != nil {
		return err
	}
	t.userData, err = c.readUserData(ctx, t.kind.VM.UserData, m)
	return err
}

func readTags(from Tags, m *managedResource) (map[string]string, error) {
	value, err := fieldpath.Pave(m.Object).GetValue(from.Path)
	if err != nil {
		return nil, fmt.Errorf("tags: %w", err)
	}
	out := map[string]string{}
	switch v := value.(type) {
	case map[string]any:
		for key, value := range v {
			out[key] = fmt.Sprint(value)
		}
	case []any:
		for _, word := range v {
			if key, value, ok := strings.Cut(fmt.Sprint(word), from.Separator); ok {
				out[key] = value
			}
		}
	default:
		return nil, fmt.Errorf("tags: %s is neither a map nor a list", from.Path)
	}
	return out, nil
}

func (c *cloud) readUserData(ctx context.Context, from UserData, m *managedResource) ([]byte, error) {
	paved := fieldpath.Pave(m.Object)
	paths, err := paved.ExpandWildcards(from.Path)
	if err != nil || len(paths) != 1 {
		return nil, fmt.Errorf("user data: %d fields are %s: %w", len(paths), from.Path, err)
	}
	value, err := paved.GetString(paths[0])
	if err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	data := []byte(value)
	if from.SecretKey != "" {
		s := &corev1.Secret{}
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: m.GetNamespace(), Name: value}, s); err != nil {
			return nil, fmt.Errorf("user data: %w", err)
		}
		data = s.Data[from.SecretKey]
	}
	if from.Base64 {
		if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
			return nil, fmt.Errorf("user data: %w", err)
		}
	}
	return data, nil
}

func (c *cloud) boot(ctx context.Context, t *thing) error {
	providerID, err := text(t.kind.VM.ProviderID, t.facts)
	if err != nil {
		return fmt.Errorf("vm.providerID: %w", err)
	}
	t.guest, err = c.host.Boot(ctx, guest.Request{
		ID: c.Provider + "/" + t.facts["id"].(string), Name: t.facts["name"].(string), UserData: t.userData,
		Metadata: metadata(t.kind.VM.Metadata, t.facts), ProviderID: providerID,
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.facts["ip"] = t.guest.IP()
	t.facts["secondIP"], t.facts["ipv6"] = guest.SecondOf(t.guest.IP()), guest.IPv6Of(t.guest.IP())
	t.startsUntil = time.Now().Add(max(startTime, c.slow[t.machine.Namespace]))
	return nil
}

// metadata returns the metadata service of a VM.
func metadata(answers []Answer, facts map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(answers, func(a Answer) bool {
			if a.URL != r.URL.String() || r.Method != method(a) {
				return false
			}
			for name, template := range a.Headers {
				if value, err := text(template, facts); err != nil || r.Header.Get(name) != value {
					return false
				}
			}
			return true
		})
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		answer, err := text(answers[i].Text, facts)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(answer))
	})
}

func method(a Answer) string {
	if a.Method == "" {
		return http.MethodGet
	}
	return a.Method
}

// observe returns the status.atProvider that a provider reports of a thing, nil if the cloud does
// not have the thing at the place.
func (c *cloud) observe(kind *Resource, id, place string) (map[string]any, error) {
	c.mu.Lock()
	t, ok := c.things[key(kind, id)]
	if !ok || t.place != place {
		c.mu.Unlock()
		return nil, nil
	}
	lost, interrupted, waits := t.lost, t.interrupted, t.waits
	c.mu.Unlock()
	if waits != nil {
		return expandMap(waits.AtProvider, t.facts)
	}
	out, err := expandMap(kind.AtProvider, c.factsOf(t))
	if err != nil {
		return nil, err
	}
	also := map[string]any{}
	switch {
	case lost:
		also, err = expandMap(kind.Gone, t.facts)
	case interrupted:
		also, err = expandMap(kind.Interrupted, t.facts)
	case t.isStarting(time.Now()):
		also, err = expandMap(kind.Starting, t.facts)
	}
	maps.Copy(out, also)
	return out, err
}

// factsOf returns the facts of a thing. A companion, such as a network interface, has the addresses
// of its VM.
func (c *cloud) factsOf(t *thing) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := maps.Clone(t.facts)
	if t.kind.VM != nil {
		return out
	}
	for _, key := range addresses {
		out[key] = ""
	}
	for _, other := range c.things {
		if other.kind.VM != nil && other.machine == t.machine && other.facts["ip"] != nil {
			for _, key := range addresses {
				out[key] = other.facts[key]
			}
		}
	}
	return out
}

// userOf returns the name of the VM that uses a companion, "" if the cloud does not have the VM.
func (c *cloud) userOf(t *thing) string {
	for _, other := range c.things {
		if t.kind.VM == nil && other.kind.VM != nil && !other.lost && other.machine == t.machine {
			return other.facts["name"].(string)
		}
	}
	return ""
}

func expandMap(m, facts map[string]any) (map[string]any, error) {
	out, err := expand(m, facts)
	if err != nil || out == nil {
		return map[string]any{}, err
	}
	return out.(map[string]any), nil
}

// dependentsOf returns the names of the companions that depend on the VM of a Machine.
func (c *cloud) dependentsOf(machine types.NamespacedName) []string {
	var out []string
	for name, t := range c.things {
		if t.kind.AfterVM && t.machine == machine {
			out = append(out, name)
		}
	}
	return out
}

// hasVM reports whether the cloud has a VM of a Machine.
func (c *cloud) hasVM(machine types.NamespacedName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.things {
		if t.kind.VM != nil && t.machine == machine && !t.lost {
			return true
		}
	}
	return false
}

// remove deletes a thing on request of its provider. No cloud deletes a companion that a VM uses. A
// VM is deleted although companions depend on it, and this is recorded.
func (c *cloud) remove(ctx context.Context, kind *Resource, id, place string) error {
	c.mu.Lock()
	t, ok := c.things[key(kind, id)]
	if ok && t.place != place {
		c.mu.Unlock()
		return nil
	}
	if ok && t.kind.VM != nil {
		for _, name := range c.dependentsOf(t.machine) {
			c.torn[t.machine.Namespace] = append(c.torn[t.machine.Namespace], fmt.Sprintf("VM %s is deleted before %s", id, name))
		}
	}
	if ok && !t.kind.AfterVM {
		if vm := c.userOf(t); vm != "" {
			why := fmt.Sprintf("%s %s is in use by VM %s", kind.Kind, id, vm)
			c.torn[t.machine.Namespace] = append(c.torn[t.machine.Namespace], why)
			c.mu.Unlock()
			return fmt.Errorf("%s", why)
		}
	}
	delete(c.things, key(kind, id))
	c.mu.Unlock()
	if !ok || t.guest == nil {
		return nil
	}
	return t.guest.Stop(ctx)
}

// lose deletes a VM without its provider, as a user may.
func (c *cloud) lose(ctx context.Context, id string) error {
	kind := c.VM()
	c.mu.Lock()
	t, ok := c.things[key(kind, id)]
	if ok && kind.Gone == nil {
		delete(c.things, key(kind, id))
	}
	if ok {
		t.lost = true
	}
	c.mu.Unlock()
	if !ok || t.guest == nil {
		return fmt.Errorf("there is no VM %s", id)
	}
	if err := t.guest.Stop(ctx); err != nil || kind.Gone != nil {
		return err
	}
	return t.guest.DeleteNode(ctx)
}

// pass deletes a VM without its provider, which then passes over it: it still shows the old state.
// The Node of the VM stays.
func (c *cloud) pass(ctx context.Context, id string) error {
	c.mu.Lock()
	t, ok := c.things[key(c.VM(), id)]
	if ok {
		t.lost = true
	}
	c.mu.Unlock()
	if !ok || t.guest == nil {
		return fmt.Errorf("there is no VM %s", id)
	}
	return t.guest.Stop(ctx)
}

// addVM adds a VM that no provider created, and returns its external name. The VM never boots.
func (c *cloud) addVM(namespace, name string, tags map[string]string, forProvider map[string]any) (string, error) {
	m := &managedResource{Unstructured: unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": forProvider}}}}
	m.SetName(name)
	t := &thing{kind: c.VM(), machine: types.NamespacedName{Namespace: namespace}, facts: c.newFacts(m), tags: tags}
	id, err := c.nameThing(t.kind, m, t.facts)
	if err != nil {
		return "", err
	}
	if t.place, err = placeOf(t.kind, m); err != nil {
		return "", err
	}
	t.hasNoAddress()
	c.add(t)
	return id, nil
}

// interrupt stops a spot VM.
func (c *cloud) interrupt(ctx context.Context, id string) error {
	kind := c.VM()
	c.mu.Lock()
	t, ok := c.things[key(kind, id)]
	ok = ok && kind.Interrupted != nil && t.guest != nil
	if ok {
		t.interrupted = true
	}
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("there is no VM %s, or %s stops none", id, c.Provider)
	}
	return t.guest.Stop(ctx)
}

// vms returns the VMs that the cloud has for the Machines of a namespace.
func (c *cloud) vms(namespace string) []CloudVM {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []CloudVM
	for _, t := range c.things {
		if t.kind.VM != nil && t.machine.Namespace == namespace && !t.lost {
			out = append(out, CloudVM{
				ID: t.facts["id"].(string), Name: t.facts["name"].(string), Tags: t.tags, UserData: t.userData,
				ForProvider: t.forProvider(), State: t.state(time.Now()), CreatedAt: t.createdAt,
			})
		}
	}
	return out
}

func (t *thing) forProvider() map[string]any {
	vm, _ := t.facts["vm"].(map[string]any)
	forProvider, _, _ := unstructured.NestedMap(vm, "spec", "forProvider")
	return forProvider
}

func (t *thing) state(now time.Time) State {
	switch {
	case t.failed:
		return Failed
	case t.interrupted:
		return Interrupted
	case t.waits != nil:
		return Waiting
	case t.isStarting(now):
		return Starting
	}
	return Running
}

// companions returns the companions of the VMs of a namespace.
func (c *cloud) companions(namespace string) []Companion {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Companion
	for _, t := range c.things {
		if t.kind.VM == nil && t.machine.Namespace == namespace {
			out = append(out, Companion{
				Kind: t.kind.Kind, Name: t.facts["name"].(string), ForProvider: t.forProvider(),
				Machine: t.machine.Name, UsedBy: c.userOf(t),
			})
		}
	}
	return out
}

// beside returns the companions of the Machines of a namespace, and a description of each attempt
// to delete one too early.
func (c *cloud) beside(namespace string) (things, torn []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.things {
		if t.kind.VM == nil && t.machine.Namespace == namespace {
			things = append(things, name)
		}
	}
	return things, slices.Clone(c.torn[namespace])
}

func (c *cloud) refuse(machine types.NamespacedName, code fn.ErrorCode) error {
	if _, ok := c.Refusals[code]; !ok {
		return fmt.Errorf("the description has no refusal %s", code)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused[machine] = code
	return nil
}

// accept ends the refusal or the failing allocation of a VM. A VM that waits for room starts.
func (c *cloud) accept(ctx context.Context, machine types.NamespacedName) error {
	c.mu.Lock()
	delete(c.refused, machine)
	delete(c.failing, machine)
	var waiting []*thing
	for _, t := range c.things {
		if t.machine == machine && t.waits != nil {
			waiting = append(waiting, t)
		}
	}
	c.mu.Unlock()
	for _, t := range waiting {
		if err := c.boot(ctx, t); err != nil {
			return err
		}
		c.mu.Lock()
		t.waits = nil
		c.mu.Unlock()
	}
	return nil
}

// admit sets the only password that the cloud accepts from a ProviderConfig.
func (c *cloud) admit(config, password string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passwords[config] = password
}

func (c *cloud) takes(config, password string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return password != "" && c.passwords[config] == password
}
