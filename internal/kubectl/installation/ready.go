package installation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Waits returns why a package in the cluster is not installed and healthy in the version of its spec, or "" if it is.
func Waits(pkg *unstructured.Unstructured) string {
	want, _, _ := unstructured.NestedString(pkg.Object, "spec", "package")
	have, _, _ := unstructured.NestedString(pkg.Object, "status", "currentIdentifier")
	installed, why := condition(pkg, "Installed")
	if have != want {
		return "not unpacked yet" + why
	}
	if !installed {
		return "not installed" + why
	}
	if healthy, why := condition(pkg, "Healthy"); !healthy {
		return "not healthy" + why
	}
	return ""
}

// condition of an object, and why it is not True.
func condition(u *unstructured.Unstructured, of string) (bool, string) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		c, ok := c.(map[string]any)
		if !ok || c["type"] != of {
			continue
		}
		for _, field := range []string{"message", "reason"} {
			if s, _ := c[field].(string); s != "" {
				return c["status"] == "True", ": " + s
			}
		}
		return c["status"] == "True", ""
	}
	return false, ""
}
