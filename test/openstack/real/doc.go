// Package real gives tests access to the OpenStack of "make openstack": accounts in projects of their own, and the states that
// a test needs.
package real
