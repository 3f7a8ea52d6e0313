// Package clouds reads the entries of the clouds: apis/NAME/cloud.yaml.
//
// An entry has all that Drover's own files repeat for each cloud. The generators make of the entries what would otherwise
// be a list of clouds: API types of configurations and inventories, CRDs, the rights of provider-drover, of the users and
// of the policies, package metadata, and the tables of the docs. The conformance suite reads from them which cases a cloud is
// excused from. A cloud is known to Drover when its entry exists; no list of clouds is written by hand.
//
// No binary of Drover reads the entries.
package clouds
