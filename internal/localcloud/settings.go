package localcloud

import (
	"encoding/json"
	"fmt"
	"time"
)

// Quota limits the resources of the account.
type Quota struct {
	// VMs in any state. 0 means no limit.
	VMs int `json:"vms"`
}

// Settings are the delays and limits of the cloud. They apply to events after they were set; a VM keeps the
// times with which it was created.
type Settings struct {
	// CreateTime is how long a VM is Pending. Default 0s.
	CreateTime Duration `json:"createTime"`
	// BootTime is from Running until the VM reads its user data. Default 2s.
	BootTime Duration `json:"bootTime"`
	// ShutdownTime is how long a VM is Terminating. Default 0s.
	ShutdownTime Duration `json:"shutdownTime"`
	// RateLimit is the number of requests per second beyond which calls fail with CodeThrottled. 0, the default,
	// means no limit. Only calls for VMs and images are throttled.
	RateLimit int `json:"rateLimit"`
}

// Duration is a time.Duration that is written like "1m30s" in JSON.
type Duration time.Duration

// String formats d as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes d as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON parses d as time.ParseDuration does.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf(`invalid duration %s: must be a string like "1m30s"`, b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`invalid duration %q: must be like "1m30s"`, s)
	}
	*d = Duration(v)
	return nil
}
