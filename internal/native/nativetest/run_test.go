package nativetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"

	// The test needs any kind of VM.
	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
)

// TestRun runs the cases with both kinds of clouds: one in which the provider chooses the name of a VM, and
// one that chooses the name itself and shows a VM some time after it accepted the creation.
func TestRun(t *testing.T) {
	t.Run("ACloudWithGivenNames", func(t *testing.T) {
		Run(t, func(*testing.T) Cloud[*v1alpha1.VirtualMachine, token] { return newSky(false, 0).cloud() })
	})
	t.Run("ACloudThatChoosesNamesAndShowsThemLate", func(t *testing.T) {
		Run(t, func(*testing.T) Cloud[*v1alpha1.VirtualMachine, token] { return newSky(true, 20*time.Second).cloud() })
	})
}

type token struct {
	Token string `json:"token"`
}

// A sky is a cloud whose VMs take 10 seconds to be created, need a start, and take 5 seconds to be deleted.
type sky struct {
	choosesNames bool
	showsAfter   time.Duration

	mu        sync.Mutex
	token     int
	vms       map[string]*star
	ids       int
	calls     map[string]int
	cuts      int
	then      func()
	cutAny    func() bool
	throttled time.Time
}

type star struct {
	id, name, userData, uid string
	tags                    map[string]string
	created, deleted        time.Time
	on                      bool
	reboots                 []string
}

func newSky(choosesNames bool, showsAfter time.Duration) *sky {
	return &sky{choosesNames: choosesNames, showsAfter: showsAfter, vms: map[string]*star{}, calls: map[string]int{}}
}

func (s *sky) credentials() token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return token{Token: fmt.Sprintf("5ec4e7-%d", s.token)}
}

func (s *sky) cloud() Cloud[*v1alpha1.VirtualMachine, token] {
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: Config}}
	pc.Spec.Credentials.SecretRef = v1alpha1.SecretKeySelector{Namespace: CredentialsNamespace, Name: CredentialsSecret, Key: CredentialsKey}
	each := func(name string, do func(*star)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range s.vms {
			if v.name == name {
				do(v)
			}
		}
	}
	return Cloud[*v1alpha1.VirtualMachine, token]{
		Provider: native.Provider[*v1alpha1.VirtualMachine, token]{
			Kind: v1alpha1.VirtualMachineGroupVersionKind, Object: &v1alpha1.VirtualMachine{}, List: &v1alpha1.VirtualMachineList{},
			Configs:    providerconfig.Configs{GroupVersion: v1alpha1.SchemeGroupVersion, Namespaced: &v1alpha1.ProviderConfig{}, Cluster: &v1alpha1.ClusterProviderConfig{}},
			SecretLike: `{"token": "..."}`,
			Open: func(_ client.Object, t token) (native.Account[*v1alpha1.VirtualMachine], error) {
				return &account{sky: s, token: t}, nil
			},
			NamedByCloud: s.choosesNames, Settle: 2*s.showsAfter + time.Second,
		},
		AddToScheme: v1alpha1.AddToScheme, Config: pc, Credentials: s.credentials,
		Rotate: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.token++
		},
		Secrets: func() []string { return []string{s.credentials().Token} },
		VM: func(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
			vm := &v1alpha1.VirtualMachine{}
			vm.Spec.ForProvider.Name, vm.Spec.ForProvider.Attributes = &name, attributes
			return vm
		},
		UseUserData: func(vm *v1alpha1.VirtualMachine, ref xpv2.LocalSecretKeySelector) {
			vm.Spec.ForProvider.UserDataSecretRef = &ref
		},
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.Tags = []string{"invalid"}
			return "tags"
		},
		VMs: func() []Existing {
			s.mu.Lock()
			defer s.mu.Unlock()
			var out []Existing
			for _, v := range s.vms {
				if v.exists() {
					out = append(out, Existing{Name: v.name, UserData: v.userData})
				}
			}
			return out
		},
		Leftovers: func() []string { return nil },
		Lose:      func(name string) { each(name, func(v *star) { delete(s.vms, v.id) }) },
		Stop:      func(name string) { each(name, func(v *star) { v.on = false }) },
		Reboots: func(name string) (out []string) {
			each(name, func(v *star) { out = slices.Clone(v.reboots) })
			return out
		},
		CutCreations: func(n int, then func()) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cuts, s.then = n, then
		},
		CutAny: func(probability float64, random *rand.Rand) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cutAny = func() bool { return random.Float64() < probability }
		},
		Throttle: func(d time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.throttled = time.Now().Add(d)
		},
		Calls: func() map[string]int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return maps.Clone(s.calls)
		},
		MostCalls: 20, MostDeletionCalls: 12, CreationTakes: 5 * time.Minute,
	}
}

func (v *star) exists() bool { return v.deleted.IsZero() || time.Since(v.deleted) < 5*time.Second }

var errCut = errors.New("unexpected EOF")

type account struct {
	*sky
	token token
}

// call makes a call. Its effect remains even if the response is lost.
func (a *account) call(name string, do func() error) error {
	current := a.credentials()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[name]++
	switch {
	case time.Now().Before(a.throttled):
		return &native.Error{Class: fn.ErrorThrottled, What: name, Err: errors.New("too many requests")}
	case a.token != current:
		return &native.Error{Class: fn.ErrorPermissionDenied, What: name, Err: errors.New("the token is not valid"), Credentials: true}
	}
	err := do()
	switch {
	case name == "create" && a.cuts > 0:
		a.cuts--
		if a.then != nil {
			a.then()
		}
		return errCut
	case a.cutAny != nil && a.cutAny():
		return errCut
	}
	return err
}

func (a *account) Place(context.Context) (string, error) { return "the sky", nil }

func (a *account) Prepare(_ context.Context, vm *v1alpha1.VirtualMachine) error {
	if len(vm.Spec.ForProvider.Tags) > 0 {
		return native.Invalid("tags", "%q: not allowed", vm.Spec.ForProvider.Tags)
	}
	return nil
}

func (a *account) shows(v *star) bool { return v.exists() && time.Since(v.created) >= a.showsAfter }

func (a *account) FindLost(_ context.Context, vm *v1alpha1.VirtualMachine) (name string, err error) {
	err = a.call("list", func() error {
		for _, v := range a.vms {
			if v.uid == string(vm.UID) && a.shows(v) {
				name = v.id
			}
		}
		return nil
	})
	return name, err
}

func (a *account) Get(_ context.Context, vm *v1alpha1.VirtualMachine, _ time.Time) (out native.VM, err error) {
	err = a.call("get", func() error {
		v := a.vms[meta.GetExternalName(vm)]
		if v == nil || !v.exists() {
			return nil
		}
		out = native.VM{ProviderID: "sky://" + v.id, State: native.StateStopped}
		switch {
		case !v.deleted.IsZero():
			out.State = native.StateDeleting
		case time.Since(v.created) < 10*time.Second:
			out.State = native.StateCreating
		case v.on:
			out.State = native.StateRunning
		case vm.Observation().ProviderID == "":
			out.State = native.StateIncomplete
		}
		return nil
	})
	return out, err
}

func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	id := meta.GetExternalName(vm)
	err = a.call("create", func() error {
		if a.choosesNames {
			a.ids++
			id = fmt.Sprintf("i-%d", a.ids)
		} else if v := a.vms[id]; v != nil && v.exists() {
			return &native.Error{Class: fn.ErrorTransient, Err: errors.New("the name exists"), Refused: true}
		}
		a.vms[id] = &star{id: id, name: *vm.Spec.ForProvider.Name, userData: data, uid: string(vm.UID), tags: vm.Spec.ForProvider.Attributes, created: time.Now()}
		return nil
	})
	if err == nil {
		meta.SetExternalName(vm, id)
	}
	return err
}

func (a *account) Continue(_ context.Context, vm *v1alpha1.VirtualMachine, _ native.UserData) error {
	return a.call("start", func() error {
		if v := a.vms[meta.GetExternalName(vm)]; v != nil {
			v.on = true
		}
		return nil
	})
}

func (a *account) Reboot(_ context.Context, vm *v1alpha1.VirtualMachine, mode machinev1alpha1.RebootMode) error {
	return a.call("reboot", func() error {
		v := a.vms[meta.GetExternalName(vm)]
		v.on, v.reboots = true, append(v.reboots, string(mode))
		return nil
	})
}

func (a *account) Delete(_ context.Context, vm *v1alpha1.VirtualMachine) error {
	return a.call("delete", func() error {
		if v := a.vms[meta.GetExternalName(vm)]; v != nil && v.deleted.IsZero() {
			v.deleted = time.Now()
		}
		return nil
	})
}

func (a *account) List(_ context.Context, installation string) (out []inventory.VM, complete bool, err error) {
	err = a.call("list", func() error {
		for _, v := range a.vms {
			if a.shows(v) && v.tags[machinev1alpha1.TagInstallation] == installation {
				out = append(out, inventory.VM{ExternalName: v.id, ProviderID: "sky://" + v.id, Tags: v.tags})
			}
		}
		return nil
	})
	return out, err == nil, err
}

func (a *account) Find(_ context.Context, names []string) (out []inventory.VM, complete bool, err error) {
	err = a.call("find", func() error {
		for _, n := range names {
			if v := a.vms[n]; v != nil && v.exists() {
				out = append(out, inventory.VM{ExternalName: v.id})
			}
		}
		return nil
	})
	return out, err == nil, err
}
