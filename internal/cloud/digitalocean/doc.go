// Package digitalocean lists the Droplets of an installation of Drover in an account of
// DigitalOcean, and the volumes and reserved IPs that are tagged or in use by them.
//
// Tags of DigitalOcean are words, and objects of the whole account that outlive the tagged
// resources. A Droplet therefore has the tags drover-installation, drover-cluster and
// drover-namespace in the form key:value, and none with its Machine: the name of the Droplet
// is that of the Machine's VM resource.
package digitalocean
