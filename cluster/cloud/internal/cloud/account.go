package cloud

import (
	"slices"

	"github.com/drover-dev/drover/internal/localcloud"
)

// Quota returns the account's quota.
func (c *Cloud) Quota() localcloud.Quota {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.account.Quota
}

// SetQuota replaces the account's quota. VMs beyond it stay.
func (c *Cloud) SetQuota(q localcloud.Quota) error {
	if q.VMs < 0 {
		return invalid("vms", q.VMs, "0 (no limit) or more")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putAccount(func(a *account) { a.Quota = q })
}

// Settings returns the cloud's settings.
func (c *Cloud) Settings() localcloud.Settings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.account.Settings
}

// SetSettings replaces the cloud's settings.
func (c *Cloud) SetSettings(s localcloud.Settings) error {
	if err := validateSettings(s); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putAccount(func(a *account) { a.Settings = s })
}

// AddFault adds a fault. Some kinds act at once, and Count of the result is the number of VMs that
// they hit. Other kinds act on the next creations or lists, or until they are deleted.
func (c *Cloud) AddFault(f localcloud.Fault) (localcloud.Fault, error) {
	if err := validateFault(&f); err != nil {
		return f, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.ID = c.newID("fault-")
	if isOf(atOnce, f) {
		var err error
		f.Count, err = c.strike(f)
		return f, err
	}
	f = withDefaults(f)
	return f, c.putAccount(func(a *account) { a.Faults = append(slices.Clone(a.Faults), f) })
}

// strike applies a fault to every VM that matches, and returns their number.
func (c *Cloud) strike(f localcloud.Fault) (int, error) {
	if _, err := c.advance(); err != nil {
		return 0, err
	}
	n := 0
	for id, r := range c.vms {
		if !matches(f.Match, r.VM.Name, r.VM.Size, r.VM.Tags) {
			continue
		}
		n++
		if f.Kind == localcloud.FaultVanish {
			if err := c.remove(id); err != nil {
				return n, err
			}
			continue
		}
		stopped := *r
		stopped.KubeletStopped = true
		if err := c.put(stopped); err != nil {
			return n, err
		}
		c.note(id, "kubelet: killed")
	}
	return n, nil
}

// Faults lists the faults that are not used up, oldest first.
func (c *Cloud) Faults() []localcloud.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]localcloud.Fault{}, c.account.Faults...)
}

// DeleteFault removes a fault.
func (c *Cloud) DeleteFault(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.account.Faults, func(f localcloud.Fault) bool { return f.ID == id })
	if i < 0 {
		return localcloud.NewError(localcloud.CodeNotFound, "fault %q does not exist", id)
	}
	return c.putAccount(func(a *account) { a.Faults = slices.Delete(slices.Clone(a.Faults), i, i+1) })
}

// putAccount changes the account, in the file first.
func (c *Cloud) putAccount(change func(*account)) error {
	next := c.account
	change(&next)
	if err := c.files.Put(accountFile, next); err != nil {
		return err
	}
	c.account = next
	return nil
}
