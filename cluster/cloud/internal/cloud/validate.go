package cloud

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/drover-dev/drover/internal/localcloud"
)

// invalid returns an error with a field, its value, and the values that it must have.
func invalid(field string, value any, must string) *localcloud.Error {
	return localcloud.NewError(localcloud.CodeInvalidRequest, "%s: invalid value %q: must be %s", field, fmt.Sprint(value), must)
}

func oneOf(names []string) string { return "one of " + strings.Join(names, ", ") }

func validateCreate(r *localcloud.CreateVMRequest, available []localcloud.Image) error {
	if len(r.Name) > localcloud.MaxNameLength || len(validation.IsDNS1123Subdomain(r.Name)) > 0 {
		return invalid("name", r.Name, fmt.Sprintf(`a host name: 1 to %d lowercase letters, digits, "-" and "."`, localcloud.MaxNameLength))
	}
	var names []string
	for _, i := range available {
		names = append(names, i.Name)
	}
	if !slices.Contains(names, r.Image) {
		return invalid("image", r.Image, oneOf(names))
	}
	if _, ok := sizes[r.Size]; !ok {
		return invalid("size", r.Size, oneOf(slices.Sorted(maps.Keys(sizes))))
	}
	if len(validation.IsDNS1123Label(r.Zone)) > 0 {
		return invalid("zone", r.Zone, `a DNS label: lowercase letters, digits and "-"`)
	}
	if n := len(r.UserData); n > localcloud.MaxUserDataBytes {
		return invalid("userData", fmt.Sprintf("%d bytes", n), fmt.Sprintf("at most %d bytes", localcloud.MaxUserDataBytes))
	}
	return validateTags("tags", r.Tags)
}

func validateTags(field string, tags map[string]string) error {
	if len(tags) > localcloud.MaxTags {
		return invalid(field, fmt.Sprintf("%d tags", len(tags)), fmt.Sprintf("at most %d tags", localcloud.MaxTags))
	}
	for k, v := range tags {
		// The list call writes a tag as key=value.
		if k == "" || len(k) > localcloud.MaxTagKeyLength || strings.Contains(k, "=") {
			return invalid(field+" key", k, fmt.Sprintf(`1 to %d bytes without "="`, localcloud.MaxTagKeyLength))
		}
		if len(v) > localcloud.MaxTagValueLength {
			return invalid(field+"."+k, v, fmt.Sprintf("at most %d bytes", localcloud.MaxTagValueLength))
		}
	}
	return nil
}

func validateSettings(s localcloud.Settings) error {
	for field, d := range map[string]localcloud.Duration{
		"createTime": s.CreateTime, "bootTime": s.BootTime, "shutdownTime": s.ShutdownTime} {
		if d < 0 {
			return invalid(field, d, "0s or longer")
		}
	}
	if s.RateLimit < 0 {
		return invalid("rateLimit", s.RateLimit, "0 (no limit) or more")
	}
	return nil
}

var (
	atOnce   = []string{string(localcloud.FaultKubeletStops), string(localcloud.FaultVanish)}
	creation = []string{string(localcloud.FaultCreateAnswerLost), string(localcloud.FaultCreateFails),
		string(localcloud.FaultNeverBoots), string(localcloud.FaultNoProviderID), string(localcloud.FaultSlowBoot),
		string(localcloud.FaultUnavailable)}
	ofLists = []string{string(localcloud.FaultListFails), string(localcloud.FaultListIncomplete)}
	lasting = []string{string(localcloud.FaultMirrorFails)}
)

func validateFault(f *localcloud.Fault) error {
	kind := string(f.Kind)
	if kinds := slices.Concat(atOnce, creation, ofLists, lasting); !slices.Contains(kinds, kind) {
		return invalid("kind", kind, oneOf(slices.Sorted(slices.Values(kinds))))
	}
	if _, ok := localcloud.StatusOfCode(f.Code); f.Code != "" && !ok {
		return invalid("code", f.Code, "one of the API's error codes, like "+localcloud.CodeCapacityExhausted)
	}
	if f.Count < 0 {
		return invalid("count", f.Count, "1 or more")
	}
	if f.Count != 0 && isOf(lasting, *f) {
		return invalid("count", f.Count, "left out: the fault lasts until it is deleted")
	}
	if f.Delay < 0 || f.Kind == localcloud.FaultSlowBoot && f.Delay == 0 {
		return invalid("delay", f.Delay, "a duration longer than 0s")
	}
	if _, err := path.Match(f.Match.Name, ""); err != nil {
		return invalid("match.name", f.Match.Name, "a pattern like worker-*")
	}
	return validateTags("match.tags", f.Match.Tags)
}
