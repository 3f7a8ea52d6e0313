// Package real gives tests access to the OpenStack of "make openstack": accounts in projects of their own, the states that
// a test needs, and a gateway in front of the APIs.
package real
