package metalstack

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

// base is the base path of the API.
const base = "/metal"

// Calls that allocate, free, reset and power on a machine, for a Fault.
const (
	CreateCall = "POST /metal/v1/machine/allocate"
	FreeCall   = "DELETE /metal/v1/machine/{id}/free"
	ResetCall  = "POST /metal/v1/machine/{id}/power/reset"
	OnCall     = "POST /metal/v1/machine/{id}/power/on"
)

// A Fault makes calls fail. The project that its Match gets is the name of the user: that of the HMAC, such as
// Metal-Edit, or the subject of the token.
type Fault = fakes.Fault

// A failure is an error response.
type failure struct {
	Status  int    `json:"statuscode"`
	Message string `json:"message"`
}

func fail(status int, format string, args ...any) *failure {
	return &failure{Status: status, Message: fmt.Sprintf(format, args...)}
}

func noEntity(kind, id string) *failure {
	return fail(http.StatusNotFound, "no %s with id %q found", kind, id)
}

// isID reports whether a part of a path is an ID.
func isID(part string) bool {
	_, err := uuid.Parse(part)
	return err == nil
}

// ServeHTTP responds to a request. It panics with [http.ErrAbortHandler] to cut the connection.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := fakes.BodyOf(r)
	a.Serve(fakes.CallOf(r.Method, r.URL.Path, isID), subjectOf(r), body, func(f *fakes.Fault) {
		if f.Code == "proxy" {
			http.Error(w, "<html>"+f.Message+"</html>", f.Status)
			return
		}
		fakes.AnswerJSON(w, f.Status, fail(f.Status, "%s", f.Message))
	}, func() func() {
		answer, problem := a.serve(r, body)
		return func() {
			switch {
			case problem == nil:
				fakes.AnswerJSON(w, http.StatusOK, answer)
			case problem.Status == http.StatusTooManyRequests:
				http.Error(w, "<html>"+problem.Message+"</html>", problem.Status)
			default:
				fakes.AnswerJSON(w, problem.Status, problem)
			}
		}
	})
}

// serve authenticates a call and carries it out.
func (a *API) serve(r *http.Request, body []byte) (any, *failure) {
	a.mu.Lock()
	defer a.mu.Release()
	now := time.Now()
	a.settle(now)
	if !a.Admits(now, a.opts.RateLimit, a.opts.Refill) {
		return nil, fail(http.StatusTooManyRequests, "Too Many Requests")
	}
	u, problem := a.authenticate(r, now.Add(a.opts.ClockIsAhead))
	if problem != nil {
		return nil, problem
	}
	answer, problem := a.route(r, u, body, now)
	if problem != nil {
		return nil, problem
	}
	// The objects change when the lock is released.
	b, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(b), nil
}

func (a *API) route(r *http.Request, u user, body []byte, now time.Time) (any, *failure) {
	path, ok := strings.CutPrefix(r.URL.Path, base+"/v1/")
	if !ok {
		return nil, fail(http.StatusNotFound, "404: Page Not Found")
	}
	parts := strings.Split(path, "/")
	switch call := r.Method + " " + path; {
	case call == "POST machine/allocate":
		if problem := require(u, GroupEdit); problem != nil {
			return nil, problem
		}
		return a.allocateCall(u, body, now)
	case call == "POST machine/find":
		if problem := require(u, GroupView); problem != nil {
			return nil, problem
		}
		return a.find(body)
	case r.Method == http.MethodDelete && len(parts) == 3 && parts[0] == "machine" && parts[2] == "free":
		if problem := require(u, GroupEdit); problem != nil {
			return nil, problem
		}
		return a.freeCall(parts[1], now)
	case r.Method == http.MethodPost && len(parts) == 4 && parts[0] == "machine" && parts[2] == "power":
		if problem := require(u, GroupEdit); problem != nil {
			return nil, problem
		}
		return a.power(parts[1], parts[3], body, now)
	case r.Method == http.MethodGet && len(parts) == 2 && parts[0] == "machine":
		if problem := require(u, GroupView); problem != nil {
			return nil, problem
		}
		if m := a.machines[parts[1]]; m != nil {
			return a.view(m), nil
		}
		return nil, noEntity("machine", parts[1])
	case r.Method == http.MethodGet && len(parts) == 3 && parts[0] == "image" && parts[2] == "latest":
		if problem := require(u, GroupView); problem != nil {
			return nil, problem
		}
		return a.latest(parts[1])
	case r.Method == http.MethodGet && len(parts) == 2 && a.objects[parts[0]] != nil:
		if problem := require(u, GroupView); problem != nil {
			return nil, problem
		}
		if o := a.objects[parts[0]][parts[1]]; o != nil {
			return o, nil
		}
		return nil, noEntity(parts[0], parts[1])
	}
	return nil, fail(http.StatusNotFound, "404: Page Not Found")
}

// latest returns the newest image with the ID, whose last part of the version may be missing.
func (a *API) latest(id string) (object, *failure) {
	if o := a.objects["image"][id]; o != nil {
		return o, nil
	}
	var found []string
	for _, k := range slices.Sorted(maps.Keys(a.objects["image"])) {
		if strings.HasPrefix(k, id+".") {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return nil, fail(http.StatusNotFound, "no image for id:%s found:no image for os:%s found", id, id)
	}
	return a.objects["image"][found[len(found)-1]], nil
}

// An allocationSpec is a request for an allocation.
type allocationSpec struct {
	Project     string  `json:"projectid"`
	Partition   string  `json:"partitionid"`
	Size        string  `json:"sizeid"`
	Image       string  `json:"imageid"`
	Name        string  `json:"name"`
	Hostname    string  `json:"hostname"`
	Description string  `json:"description"`
	UserData    string  `json:"user_data"`
	Layout      *string `json:"filesystemlayoutid"`
	Networks    []struct {
		ID   string `json:"networkid"`
		Auto *bool  `json:"autoacquire"`
	} `json:"networks"`
	SSHKeys       []string `json:"ssh_pub_keys"`
	Tags          []string `json:"tags"`
	PlacementTags []string `json:"placement_tags"`
	DNSServers    []struct {
		IP string `json:"ip"`
	} `json:"dns_servers"`
	NTPServers []struct {
		Address string `json:"address"`
	} `json:"ntp_servers"`

	exactImage string
}

// allocateCall allocates any machine that waits.
func (a *API) allocateCall(u user, body []byte, now time.Time) (any, *failure) {
	var s allocationSpec
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, fail(http.StatusBadRequest, "%v", err)
	}
	if problem := a.checkSpec(&s); problem != nil {
		return nil, problem
	}
	if limit, ok := a.quotas[s.Project]; ok {
		count := 0
		for _, m := range a.machines {
			if m.allocation != nil && m.allocation.spec.Project == s.Project {
				count++
			}
		}
		if count >= limit {
			return nil, fail(http.StatusUnprocessableEntity, "project quota for machines reached max:%d", limit)
		}
	}
	if s.Layout != nil && a.objects["filesystemlayout"][*s.Layout] == nil {
		return nil, noEntity("filesystemlayout", *s.Layout)
	}
	if a.objects["partition"][s.Partition] == nil {
		return nil, fail(http.StatusNotFound, "partition cannot be found: no partition with id %q found", s.Partition)
	}
	var candidates []*machine
	for _, id := range slices.Sorted(maps.Keys(a.machines)) {
		if m := a.machines[id]; m.isAvailable(s.Partition, s.Size) {
			candidates = append(candidates, m)
		}
	}
	if len(candidates) == 0 {
		return nil, fail(http.StatusUnprocessableEntity, "no machine available")
	}
	if problem := a.checkNetworks(s); problem != nil {
		return nil, problem
	}
	m := candidates[rand.Intn(len(candidates))]
	if problem := a.allocate(m, s, u.email, now); problem != nil {
		return nil, problem
	}
	a.settle(now)
	return a.view(m), nil
}

// checkSpec checks the parts of a request whose errors have the status 400.
func (a *API) checkSpec(s *allocationSpec) *failure {
	if s.Networks == nil {
		return fail(http.StatusBadRequest, "network ids cannot be nil")
	}
	if len(s.Networks) == 0 {
		return fail(http.StatusBadRequest, "network ids cannot be empty")
	}
	image, problem := a.latest(s.Image)
	if problem != nil {
		problem.Status = http.StatusBadRequest
		return problem
	}
	s.exactImage, _ = image["id"].(string)
	if features, _ := image["features"].([]string); !slices.Contains(features, "machine") {
		return fail(http.StatusBadRequest, "given image is not usable for a machine, features: %s", strings.Join(features, ", "))
	}
	switch {
	case s.Partition == "":
		return fail(http.StatusBadRequest, "when no machine id is given, a partition id must be specified")
	case a.objects["size"][s.Size] == nil:
		return fail(http.StatusBadRequest, "size:%s not found err:no size with id %q found", s.Size, s.Size)
	case len(s.DNSServers) > 3:
		return fail(http.StatusBadRequest, "please specify a maximum of three dns servers")
	case len(s.NTPServers) > 0 && (len(s.NTPServers) < 3 || len(s.NTPServers) > 5):
		return fail(http.StatusBadRequest, "please specify a minimum of 3 and a maximum of 5 ntp servers")
	case s.Project == "":
		return fail(http.StatusUnprocessableEntity, "project id must be specified")
	}
	for _, k := range s.SSHKeys {
		if len(strings.Fields(k)) < 2 {
			return fail(http.StatusUnprocessableEntity, "invalid public SSH key: %s", k)
		}
	}
	if a.objects["project"][s.Project] == nil {
		return fail(http.StatusNotFound, "project with id:%s not found", s.Project)
	}
	if s.Hostname == "" {
		s.Hostname = "metal"
	}
	return nil
}

// checkNetworks checks the networks of a request.
func (a *API) checkNetworks(s allocationSpec) *failure {
	seen, private := map[string]bool{}, 0
	for _, n := range s.Networks {
		o := a.objects["network"][n.ID]
		switch {
		case o == nil:
			return fail(http.StatusNotFound, "unable to gather networks:no network with id %q found", n.ID)
		case o["underlay"] == true:
			return fail(http.StatusUnprocessableEntity, "unable to gather networks:underlay networks are not allowed to be set explicitly: %s", n.ID)
		case o["privatesuper"] == true:
			return fail(http.StatusUnprocessableEntity, "unable to gather networks:private super networks are not allowed to be set explicitly: %s", n.ID)
		case seen[n.ID]:
			return fail(http.StatusUnprocessableEntity, "unable to gather networks:given network ids are not unique")
		}
		seen[n.ID] = true
		if o["parentnetworkid"] == nil {
			continue
		}
		if private++; private > 1 {
			return fail(http.StatusUnprocessableEntity, "unable to gather networks:multiple private networks are specified but there must be only one primary private network that must not be shared")
		}
		if o["projectid"] != s.Project {
			return fail(http.StatusUnprocessableEntity, "unable to gather networks:the given private network does not belong to the project, which is not allowed")
		}
		if o["partitionid"] != s.Partition {
			return fail(http.StatusUnprocessableEntity, "unable to gather networks:private network %q must be located in the partition where the machine is going to be placed", n.ID)
		}
	}
	if private == 0 {
		return fail(http.StatusUnprocessableEntity, "unable to gather networks:no private network given")
	}
	return nil
}

// freeCall frees a machine. It does the same for a machine that is not allocated.
func (a *API) freeCall(id string, now time.Time) (any, *failure) {
	m := a.machines[id]
	switch {
	case m == nil:
		return nil, noEntity("machine", id)
	case m.state == "LOCKED":
		return nil, fail(http.StatusUnprocessableEntity, "machine is locked")
	case m.allocation == nil:
		return a.view(m), nil
	}
	a.free(m, now)
	return a.view(m), nil
}

// power sends a command to the management controller of a machine, of whatever owner. A reset is an event also if it has
// no effect, because the machine is powered off. The command to power on a machine is none.
func (a *API) power(id, command string, body []byte, now time.Time) (any, *failure) {
	m := a.machines[id]
	switch {
	case m == nil:
		return nil, noEntity("machine", id)
	case !json.Valid(body):
		return nil, fail(http.StatusBadRequest, "unexpected end of JSON input")
	case command == "reset":
		a.note(m, event{name: eventReboot, message: "RESET", at: now})
		m.due, m.wasReset = nil, !m.off
	case command != "on":
		return nil, fail(http.StatusNotFound, "404: Page Not Found")
	}
	starts := command == "on" && m.off
	if m.allocation != nil && (starts || m.wasReset) {
		// The last third of an installation is the boot.
		m.allocation.resets++
		m.due = []event{{name: eventHome, at: now.Add(a.opts.InstallTakes / 3)}}
	}
	m.off = m.off && !starts
	return a.view(m), nil
}

// find returns the machines that meet all criteria.
func (a *API) find(body []byte) (any, *failure) {
	var q struct {
		ID      *string  `json:"id"`
		Project *string  `json:"allocation_project"`
		Role    *string  `json:"allocation_role"`
		Tags    []string `json:"tags"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fail(http.StatusBadRequest, "%v", err)
	}
	out := []object{}
	for _, id := range slices.Sorted(maps.Keys(a.machines)) {
		m := a.machines[id]
		al := m.allocation
		if q.ID != nil && *q.ID != id || q.Project != nil && (al == nil || al.spec.Project != *q.Project) || q.Role != nil && (al == nil || *q.Role != "machine") ||
			slices.ContainsFunc(q.Tags, func(t string) bool { return !slices.Contains(m.tags, t) }) {
			continue
		}
		out = append(out, a.view(m))
	}
	return out, nil
}

// view returns a machine as the API does.
func (a *API) view(m *machine) object {
	log := []object{}
	for _, e := range m.events[:min(len(m.events), 20)] {
		log = append(log, object{"event": e.name, "message": e.message, "time": stamp(e.at)})
	}
	events := object{"log": log, "crash_loop": m.crashLoop, "failed_machine_reclaim": false, "last_event_time": stamp(m.events[0].at)}
	if m.crashLoop {
		events["last_error_event"] = log[0]
	}
	tags := m.tags
	if tags == nil {
		tags = []string{}
	}
	out := object{
		"id": m.id, "rackid": m.rack, "tags": tags, "liveliness": "Alive", "events": events,
		"partition": a.objects["partition"][m.partition], "size": a.objects["size"][m.size],
		"state":    object{"value": m.state, "description": m.description, "issuer": m.issuer, "metal_hammer_version": "v0.13.2"},
		"bios":     object{"date": "", "vendor": "", "version": ""},
		"ledstate": object{"value": "LED-OFF", "description": ""},
		"hardware": object{"cpu_cores": 8, "memory": 64 << 30, "disks": []object{}, "nics": []object{}},
	}
	al := m.allocation
	if al == nil {
		return out
	}
	networks := []object{}
	for _, n := range al.networks {
		networks = append(networks, object{
			"networkid": n.id, "ips": n.ips, "private": n.private, "underlay": false, "nat": false, "vrf": 46, "asn": 4200000001,
			"prefixes": []string{}, "destinationprefixes": []string{},
		})
	}
	allocated := object{
		"allocationuuid": al.uuid, "created": stamp(al.created), "creator": al.creator, "name": al.spec.Name, "hostname": al.spec.Hostname,
		"description": al.spec.Description, "project": al.spec.Project, "role": "machine", "succeeded": m.events[0].name == eventHome, "reinstall": false,
		"ssh_pub_keys": al.spec.SSHKeys, "user_data": al.spec.UserData, "networks": networks,
	}
	if o := a.objects["image"][al.image]; o != nil {
		allocated["image"] = o
	}
	out["allocation"] = allocated
	return out
}

// stamp returns a time as the API does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
