// Package real gives tests access to the OpenStack of "make openstack": accounts in projects of their own, the states that
// a test needs, and a gateway in front of the APIs. The gateway passes calls on as they are, counts and records them, and makes
// them fail in the few ways that the OpenStack itself cannot be made to: a rate limit, and an answer that gets lost.
package real
