package allow

import (
	"regexp"
	"strings"
	"testing"
)

func TestNamespacesThatMayUseAConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		patterns  []string
		namespace string
		want      bool
	}{
		"WithoutAListNone":              {nil, "team-a", false},
		"WithAnEmptyListNone":           {[]string{}, "team-a", false},
		"ByItsName":                     {[]string{"team-a"}, "team-a", true},
		"ByOneOfSeveralNames":           {[]string{"team-b", "team-a"}, "team-a", true},
		"NotByABeginningOfItsName":      {[]string{"team"}, "team-a", false},
		"NotByAnEndOfItsName":           {[]string{"a"}, "team-a", false},
		"ByAPattern":                    {[]string{"team-*"}, "team-a", true},
		"ByAPatternWithNothingMore":     {[]string{"team-*"}, "team-", true},
		"NotByAPatternOfOthers":         {[]string{"team-*"}, "my-team-a", false},
		"ByAPatternInTheMiddle":         {[]string{"*-team-*"}, "my-team-a", true},
		"NotByAnOverlapOfBothEnds":      {[]string{"aba*aba"}, "ababa", false},
		"ByAllOfThem":                   {[]string{"*"}, "kube-system", true},
		"AQuestionMarkIsNotSpecial":     {[]string{"team-?"}, "team-a", false},
		"BracketsAreNotSpecial":         {[]string{"team-[a-z]"}, "team-a", false},
		"AnEmptyPatternMatchesNothing":  {[]string{""}, "team-a", false},
		"TheMiddlePartsMustBeInOrder":   {[]string{"*b*a*"}, "xaxbx", false},
		"TheMiddlePartsMayBeFarApart":   {[]string{"*a*b*"}, "xaxbx", true},
		"TheWordDefaultIsANameLikeAny":  {[]string{"default"}, "team-a", false},
		"TheNamespaceDefaultIsOneOfAll": {[]string{"default"}, "default", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Namespace(tc.patterns, tc.namespace); got != tc.want {
				t.Errorf("%q in %q: %t, want %t", tc.namespace, tc.patterns, got, tc.want)
			}
		})
	}
}

func TestKeysThatMachinesMaySetOnNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		patterns     []string
		key          string
		label, taint bool
	}{
		"AKeyWithoutADomain":                        {nil, "team", true, true},
		"AKeyOfAnyDomain":                           {nil, "example.org/team", true, true},
		"AKeyOfADomainThatOnlyEndsLikeAReservedOne": {nil, "notkubernetes.io/team", true, true},
		"AKeyOfKubernetes":                          {nil, "kubernetes.io/team", false, false},
		"AKeyBelowKubernetes":                       {nil, "x.y.kubernetes.io/team", false, false},
		"AKeyBelowK8s":                              {nil, "x.k8s.io/team", false, false},
		"ARole":                                     {nil, "node-role.kubernetes.io/worker", true, true},
		"TheRoleOfTheControlPlane":                  {nil, "node-role.kubernetes.io/control-plane", false, false},
		"ItsOldName":                                {nil, "node-role.kubernetes.io/master", false, false},
		"TheRoleOfEtcd":                             {nil, "node-role.kubernetes.io/etcd", false, false},
		"AZone":                                     {nil, "topology.kubernetes.io/zone", true, true},
		"AnInstanceType":                            {nil, "node.kubernetes.io/instance-type", true, true},
		"ALabelThatAKubeletMaySet":                  {nil, "node.kubernetes.io/lifecycle", true, false},
		"ATaintThatEvictsFromAFailedNode":           {nil, "node.kubernetes.io/out-of-service", true, false},
		"TheExclusionOfAnyVolumeTopology":           {nil, "topology.example.kubernetes.io/zone", false, false},
		"WhatKeepsWorkloadsApart":                   {nil, "node-restriction.kubernetes.io/tier", false, false},
		"WhatKeepsWorkloadsApartByItsName":          {[]string{"node-restriction.kubernetes.io/tier"}, "node-restriction.kubernetes.io/tier", true, true},
		"WhatKeepsWorkloadsApartByItsDomain":        {[]string{"node-restriction.kubernetes.io/*"}, "node-restriction.kubernetes.io/tier", true, true},
		"WhatKeepsWorkloadsApartNotByAll":           {[]string{"*"}, "node-restriction.kubernetes.io/tier", false, false},
		"WhatKeepsWorkloadsApartNotByAllOfADomain":  {[]string{"*.kubernetes.io/*"}, "node-restriction.kubernetes.io/tier", false, false},
		"AllByAll":                                  {[]string{"*"}, "kubernetes.io/team", true, true},
		"AnEmptyListAllowsNone":                     {[]string{}, "team", false, false},
		"AListReplacesTheDefault":                   {[]string{"example.org/*"}, "team", false, false},
		"AListMayIncludeTheDefault":                 {[]string{"x.k8s.io/*", "default"}, "team", true, true},
		"AListWithTheDefaultAddsToIt":               {[]string{"x.k8s.io/*", "default"}, "x.k8s.io/a", true, true},
		"AListWithTheDefaultAddsNothingElse":        {[]string{"default"}, "node-role.kubernetes.io/etcd", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NodeLabel(tc.patterns, tc.key); got != tc.label {
				t.Errorf("label %q by %q: %t, want %t", tc.key, tc.patterns, got, tc.label)
			}
			if got := NodeTaint(tc.patterns, tc.key); got != tc.taint {
				t.Errorf("taint %q by %q: %t, want %t", tc.key, tc.patterns, got, tc.taint)
			}
		})
	}
}

// FuzzMatches compares with a regular expression.
func FuzzMatches(f *testing.F) {
	for _, s := range [][2]string{{"", ""}, {"*", ""}, {"**", "a"}, {"a*b*c", "abbc"}, {"team-*", "team-a"}, {"aba*aba", "ababa"}, {"*a*", "bab"}, {"\xff*", "\xff"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(text, "") != text {
			Matches(pattern, text)
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		want := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(text)
		if got := Matches(pattern, text); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, text, got, want)
		}
	})
}
