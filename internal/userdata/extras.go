package userdata

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/validation/field"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// awaitJoin ends when the kubelet has its client certificate.
//
//go:embed scripts/await-join.sh
var awaitJoin string

// applyExtras adds the files, units and steps of the class. They are checked like those of a profile, and
// replace none.
func (d *draft) applyExtras(in Input, at *field.Path) field.ErrorList {
	s := in.Settings
	except := ""
	if in.Profile == nil {
		except = pathContainerdConfig // It is the image's.
	}
	errs := checkFiles(s.Files, at.Child("files"), except)
	errs = append(errs, checkUnits(s.Units, at.Child("units"))...)
	errs = append(errs, checkSteps(s.StepsBeforeJoin, at.Child("stepsBeforeJoin"))...)
	errs = append(errs, checkSteps(s.StepsAfterJoin, at.Child("stepsAfterJoin"))...)
	errs = append(errs, checkExtraSecrets(s, at)...)
	if len(errs) > 0 {
		return errs
	}
	for i, f := range s.Files {
		if f.Path == d.Environment["KUBELET_PATH"] {
			errs = append(errs, field.Forbidden(at.Child("files").Index(i).Child("path"), f.Path+" is the kubelet"))
			continue
		}
		if err := d.addFile(fileOf(f), at.Child("files").Index(i).Child("path")); err != nil {
			errs = append(errs, err)
		}
	}
	for i, u := range s.Units {
		errs = append(errs, d.addUnit(unitOf(u), at.Child("units").Index(i).Child("name"))...)
	}
	d.beforeJoin = stepsOf(s.StepsBeforeJoin)
	if len(s.StepsAfterJoin) > 0 {
		d.afterJoin = append([]Step{{Name: "await-join", Script: awaitJoin}}, stepsOf(s.StepsAfterJoin)...)
	}
	return errs
}

// checkExtraSecrets refuses private keys.
func checkExtraSecrets(s machinev1alpha1.OperatingSystemSettings, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(content string, at *field.Path) {
		if err := checkSecret(content, at); err != nil {
			errs = append(errs, err)
		}
	}
	for i, f := range s.Files {
		check(f.Content, at.Child("files").Index(i).Child("content"))
	}
	for i, u := range s.Units {
		check(u.Content, at.Child("units").Index(i).Child("content"))
		for j, drop := range u.DropIns {
			check(drop.Content, at.Child("units").Index(i).Child("dropIns").Index(j).Child("content"))
		}
	}
	for name, steps := range map[string][]machinev1alpha1.MachineStep{"stepsBeforeJoin": s.StepsBeforeJoin, "stepsAfterJoin": s.StepsAfterJoin} {
		for i, step := range steps {
			check(step.Script, at.Child(name).Index(i).Child("script"))
		}
	}
	return errs
}

var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// applySSH lets users log in.
func (d *draft) applySSH(in Input, at *field.Path) field.ErrorList {
	s := in.Settings.SSH
	if s == nil {
		return nil
	}
	at = at.Child("ssh")
	var errs field.ErrorList
	if s.User != "" && !userName.MatchString(s.User) {
		errs = append(errs, field.Invalid(at.Child("user"), s.User, "must be the name of a user: letters, digits, _ and - in lower case"))
	}
	if len(s.AuthorizedKeys) == 0 {
		errs = append(errs, field.Required(at.Child("authorizedKeys"), "there must be at least one"))
	}
	for i, key := range s.AuthorizedKeys {
		if err := checkAuthorizedKey(key, at.Child("authorizedKeys").Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	d.LoginUser, d.AuthorizedKeys = s.User, s.AuthorizedKeys
	return errs
}

// checkAuthorizedKey leaves out the value in errors: it may be the private half.
func checkAuthorizedKey(key string, at *field.Path) *field.Error {
	const must = "must be one line of an authorized_keys file, like ssh-ed25519 AAAA... operator"
	if strings.ContainsFunc(key, func(r rune) bool { return isControl(r) || r == '\n' }) {
		return field.Invalid(at, field.OmitValueType{}, must)
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key)); err != nil {
		return field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("%s: %v", must, err))
	}
	return checkContent(key, at)
}
