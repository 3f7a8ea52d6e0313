// Package openstack has the controllers of the managed resources of OpenStack.
package openstack
