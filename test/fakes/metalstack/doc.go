// Package metalstack is a fake of a metal-api, the API of metal-stack: an [http.Handler] with the part that Drover's
// provider calls. It keeps its state in memory. It verifies the HMAC of each call with its date and its user, or the
// signature and the claims of a token of OpenID Connect. It has a pool of machines: an allocation takes one, which is
// then installed, and a machine that is freed is wiped, registers and waits before it can be allocated again.
//
// Paths, objects and fields follow the description of the API, metal-api.json of github.com/metal-stack/metal-go v0.43.0.
// Behaviour and errors follow the source of github.com/metal-stack/metal-api:
//
//	call, behaviour                                  source
//	POST /v1/machine/allocate, /find                 metal-api.json; internal/service/machine-service.go
//	GET /v1/machine/{id}, DELETE .../{id}/free       metal-api.json; internal/service/machine-service.go, async-actor.go
//	POST /v1/machine/{id}/power/reset, /power/on     metal-api.json; internal/service/machine-service.go (machineCmd)
//	"Phoned Home" after a "Planned Reboot"           internal/fsm/events.go, internal/fsm/states/planned-reboot.go
//	GET /v1/project, /partition, /size, /network     metal-api.json
//	GET /v1/filesystemlayout, /v1/image/{id}/latest  metal-api.json; internal/datastore/image.go
//	X-Date, X-Data-Salt, Authorization, 15 seconds   github.com/metal-stack/security v0.9.4: mac.go
//	an unknown user is a guest without rights        security: user.go
//	403 for all errors of authentication             github.com/metal-stack/metal-lib v0.23.5: rest
//	"Wrong HMAC found", "... is too old ..."         security: mac.go
//	"invalid token", "token is expired"              security: dex.go; github.com/golang-jwt/jwt/v5
//	"you are not member in one of ..."               internal/service/service.go
//	400 for errors of the specification, 404, 422    internal/service/machine-service.go, service.go
//	"no machine available"                           internal/datastore/machine.go
//	"project quota for machines reached max:..."     internal/service/machine-service.go
//	"cannot allocate free ip in ipam, no ips left"   internal/service/ip-service.go
//	"machine is locked"                              internal/service/async-actor.go
//	"no partition with id ... found"                 internal/datastore/rethinkdb.go
//	"no image for id:... found"                      internal/datastore/image.go
//	tags are written and removed with an allocation  internal/service/machine-service.go, async-actor.go
//	provisioning events, the newest first            internal/metal/provisioning.go, internal/fsm
//	a list has no pages                              internal/service/machine-service.go
//
// The metal-api has no rate limit of its own. The status 429 is that of a proxy in front of it, without a header
// Retry-After.
package metalstack
