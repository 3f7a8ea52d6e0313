package main

import (
	"math/rand/v2"
	"time"
)

// A kind of action.
type kind string

// Kinds of actions of the cloud, of the clusters, and of users.
const (
	vmVanishes        kind = "VM vanishes"
	kubeletStops      kind = "kubelet stops"
	vmNeverBoots      kind = "VM never boots"
	vmBootsSlowly     kind = "VM boots slowly"
	createRefused     kind = "creation refused"
	createFails       kind = "creation fails after it was accepted"
	createUnavailable kind = "cloud unavailable"
	answerLost        kind = "answer to a creation lost"
	listFails         kind = "list of VMs fails"
	listIncomplete    kind = "list of VMs incomplete"
	quotaReached      kind = "quota reached for a while"
	cloudThrottles    kind = "cloud throttles for a while"
	cloudSlow         kind = "cloud slow for a while"

	targetCut     kind = "target API server cut off"
	nodeDeleted   kind = "Node deleted by hand"
	orphanTorn    kind = "Machine torn out by its finalizers"
	restartOne    kind = "restart"
	restartTwo    kind = "restart of two at once"
	machineDelete kind = "Machine deleted by hand"
	replaceAsked  kind = "replacement asked for"

	rollout kind = "rollout"
	scale   kind = "scaled"
	pause   kind = "paused for a while"
	freeze  kind = "frozen by hand for a while"
)

// weights of the kinds: the share of each in all actions.
var weights = []struct {
	kind   kind
	weight int
}{
	{vmVanishes, 4}, {kubeletStops, 3}, {vmNeverBoots, 2}, {vmBootsSlowly, 2},
	{createRefused, 4}, {createFails, 2}, {createUnavailable, 2}, {answerLost, 3},
	{listFails, 1}, {listIncomplete, 1}, {quotaReached, 1}, {cloudThrottles, 1}, {cloudSlow, 1},
	{targetCut, 2}, {nodeDeleted, 2}, {orphanTorn, 2}, {restartOne, 6}, {restartTwo, 2}, {machineDelete, 2}, {replaceAsked, 2},
	{rollout, 4}, {scale, 6}, {pause, 1}, {freeze, 1},
}

// An action has a kind and parameters. Each kind uses the parameters that it needs, so that later
// actions do not depend on its result.
type action struct {
	kind kind
	// after is the delay since the previous action.
	after time.Duration
	// lasts is the duration of a temporary action.
	lasts time.Duration
	// pick and other select from the objects that exist at the time.
	pick, other uint64
	// count of affected VMs or creations.
	count int
}

// round returns the n-th actions of a seed.
func round(seed uint64, n, actions int) []action {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	out := make([]action, 0, actions)
	for range actions {
		a := action{
			after: time.Duration(random.IntN(7000)) * time.Millisecond,
			lasts: 5*time.Second + time.Duration(random.IntN(40))*time.Second,
			pick:  random.Uint64(), other: random.Uint64(),
			count: 1 + random.IntN(3),
		}
		for i, at := 0, random.IntN(total); ; i++ {
			if at -= weights[i].weight; at < 0 {
				a.kind = weights[i].kind
				break
			}
		}
		out = append(out, a)
	}
	return out
}

// choose an element.
func choose[T any](by uint64, of []T) T {
	return of[by%uint64(len(of))]
}
