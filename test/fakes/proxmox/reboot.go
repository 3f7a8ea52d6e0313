package proxmox

import (
	"fmt"
	"strconv"
	"time"
)

// qmeventd is the user of the task that starts a VM again after its guest shut down for a reboot.
const qmeventd = "root@pam"

// defaultShutdown is how long a reboot waits for the guest to shut down, unless its caller chooses.
const defaultShutdown = time.Minute

// reboot starts the task that asks the guest to shut down. If the guest does, the VM is started again by another task. The
// first task holds the lock of the configuration while it waits.
func (c *call) reboot(m *machine) (any, *failure) {
	waits := defaultShutdown
	if text := c.params["timeout"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return nil, badParameter("timeout", "type check ('integer') failed - got '%s'", text)
		}
		waits = time.Duration(n) * time.Second
	}
	if !m.running {
		return nil, dies("VM %d not running", m.id)
	}
	takes := c.opts.Step
	if m.hangs {
		takes = waits
	}
	if m.config["lock"] == "" && !c.isHeld(m) {
		m.reboots = append(m.reboots, "Soft")
	}
	return c.begin(c.now, m.node, "qmreboot", m.id, c.user, takes, func(now time.Time) string {
		switch {
		case m.config["lock"] != "":
			return fmt.Sprintf("VM is locked (%s)", m.config["lock"])
		case !m.running:
			return ""
		case m.hangs:
			return "VM quit/powerdown failed - got timeout"
		}
		c.restart(m)
		c.beginStart(now, m, qmeventd)
		return ""
	}), nil
}

// reset starts the task that resets a VM. The process of the VM continues, and its guest boots.
func (c *call) reset(m *machine) (any, *failure) {
	if !m.running {
		return nil, dies("VM %d not running", m.id)
	}
	return c.begin(c.now, m.node, "qmreset", m.id, c.user, c.opts.Step, func(now time.Time) string {
		if text := c.refusesTask(m); text != "" {
			return text
		}
		if !m.running {
			return fmt.Sprintf("VM %d not running", m.id)
		}
		m.reboots = append(m.reboots, "Hard")
		c.restart(m)
		c.boot(m, now)
		return ""
	}), nil
}

// refusesTask returns the text with which the task of a VM fails because of a lock, or "".
func (c *Cluster) refusesTask(m *machine) string {
	switch {
	case c.isHeld(m):
		return lockTimeout(m)
	case m.config["lock"] != "":
		return fmt.Sprintf("VM is locked (%s)", m.config["lock"])
	}
	return ""
}

// isHeld reports whether a reboot that waits for its guest holds the lock of the VM's configuration.
func (c *Cluster) isHeld(m *machine) bool {
	for _, t := range c.tasks {
		if t.kind == "qmreboot" && t.vm == m.id && t.exit == "" {
			return true
		}
	}
	return false
}

func lockTimeout(m *machine) string {
	return fmt.Sprintf("can't lock file '/var/lock/qemu-server/lock-%d.conf' - got timeout", m.id)
}
