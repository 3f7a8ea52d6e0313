package gcpmodel

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

const instance = `{"name": "vm-1", "machineType": "zones/z/machineTypes/m", "disks": [{"boot": true, "initializeParams": {"diskSizeGb": "10"}}]}`

func model(t *testing.T) *Model {
	t.Helper()
	m, err := Compute()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func request(m *Model, method, target, body string) (*Call, error) {
	u, err := url.Parse("https://compute.googleapis.com/compute/v1/" + target)
	if err != nil {
		return nil, err
	}
	return m.Request(method, u, []byte(body))
}

// TestRequests has requests of each kind that Google would refuse.
func TestRequests(t *testing.T) {
	const zone = "projects/my-project/zones/europe-west4-a/"
	cases := map[string]struct {
		method, target, body string
		want                 string // part of the error; empty for none
	}{
		"ARightOne":                      {http.MethodPost, zone + "instances?requestId=x&alt=json&prettyPrint=false", instance, ""},
		"AnUnknownMethod":                {http.MethodPost, zone + "instances/vm-1/dance", "", "the API has no such method"},
		"AnotherVerb":                    {http.MethodPut, zone + "instances", instance, "the API has no such method"},
		"AProjectThatIsNone":             {http.MethodGet, "projects/My_Project/zones/z/instances/vm-1", "", `project: invalid value "My_Project"`},
		"AnInstanceByItsNumber":          {http.MethodGet, zone + "instances/4711", "", ""},
		"AnInstanceThatIsNone":           {http.MethodGet, zone + "instances/VM", "", `instance: invalid value "VM"`},
		"AParameterThatDoesNotExist":     {http.MethodPost, zone + "instances?request=x", instance, "there is no parameter request"},
		"AParameterTwice":                {http.MethodPost, zone + "instances?requestId=x&requestId=y", instance, "the parameter requestId is given 2 times"},
		"ANumberThatIsNone":              {http.MethodGet, "projects/p/aggregated/instances?maxResults=many", "", `maxResults: invalid value "many"`},
		"ANumberThatIsNegative":          {http.MethodGet, "projects/p/aggregated/instances?maxResults=-1", "", `maxResults: invalid value "-1"`},
		"ANumberThatIsTooLarge":          {http.MethodGet, zone + "instances/vm-1/serialPort?port=5", "", "port: invalid value 5: must be at most 4"},
		"ABooleanThatIsNone":             {http.MethodGet, "projects/p/aggregated/instances?returnPartialSuccess=maybe", "", `returnPartialSuccess: invalid value "maybe"`},
		"ABodyWithoutNeed":               {http.MethodPost, zone + "instances/vm-1/reset", "{}", "it has a body, and the method has none"},
		"ABodyThatIsMissing":             {http.MethodPost, zone + "instances", "", "the body is no JSON"},
		"APropertyThatDoesNotExist":      {http.MethodPost, zone + "instances", `{"name": "a", "size": 4}`, "Instance: there is no property size"},
		"ANestedOneThatDoesNotExist":     {http.MethodPost, zone + "instances", `{"name": "a", "disks": [{"sizeGb": "10"}]}`, "Instance.disks[0]: there is no property sizeGb"},
		"APropertyThatIsRequired":        {http.MethodPost, zone + "instances", `{"labels": {"a": "b"}}`, "Instance.name: compute.instances.insert requires it"},
		"ANameThatIsNone":                {http.MethodPost, zone + "instances", `{"name": "VM 1"}`, `Instance.name: invalid value "VM 1"`},
		"APropertyThatOnlyGoogleSets":    {http.MethodPost, zone + "instances", `{"name": "a", "status": "RUNNING"}`, "Instance.status: only Google sets it"},
		"AValueThatDoesNotExist":         {http.MethodPost, zone + "instances", `{"name": "a", "scheduling": {"provisioningModel": "CHEAP"}}`, `Instance.scheduling.provisioningModel: invalid value "CHEAP": must be one of`},
		"ALargeNumberThatIsNoText":       {http.MethodPost, zone + "instances", `{"name": "a", "disks": [{"initializeParams": {"diskSizeGb": 10}}]}`, "Instance.disks[0].initializeParams.diskSizeGb: must be a text"},
		"ASmallNumberThatIsAText":        {http.MethodPost, zone + "instances", `{"name": "a", "guestAccelerators": [{"acceleratorCount": "1"}]}`, "acceleratorCount: must be a number"},
		"AListThatIsNone":                {http.MethodPost, zone + "instances", `{"name": "a", "disks": {}}`, "Instance.disks: must be a list"},
		"ATextThatIsNone":                {http.MethodPost, zone + "instances", `{"name": "a", "labels": {"a": 1}}`, "Instance.labels.a: must be a text"},
		"ABooleanOfABodyThatIsNone":      {http.MethodPost, zone + "instances", `{"name": "a", "canIpForward": "yes"}`, "Instance.canIpForward: must be true or false"},
		"AnImageOfAFamilyIsNoImage":      {http.MethodGet, "projects/p/global/images/family/ubuntu", "", ""},
		"AParameterOfThePathInTheQuery":  {http.MethodGet, zone + "instances/vm-1?zone=x", "", "the parameter zone is not one of the query"},
		"AFilterIsNotReadByTheModelOnly": {http.MethodGet, "projects/p/aggregated/instances?filter=labels.a%3A*&fields=items", "", ""},
	}
	m := model(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := request(m, tc.method, tc.target, tc.body)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestAnswers has answers that a fake could give and Google does not.
func TestAnswers(t *testing.T) {
	const failure = `{"error": {"code": 404, "message": "m", "errors": [{"domain": "global", "reason": "notFound", "message": "m"}]}}`
	cases := map[string]struct {
		status int
		body   string
		want   string // part of the error; empty for none
	}{
		"ARightOne":                 {200, `{"kind": "compute#operation", "name": "o", "status": "DONE", "targetId": "4711", "progress": 100}`, ""},
		"APartOfOne":                {200, `{"name": "o"}`, ""},
		"AStatusThatDoesNotExist":   {200, `{"status": "FINISHED"}`, `Operation.status: invalid value "FINISHED"`},
		"APropertyThatDoesNotExist": {200, `{"state": "DONE"}`, "Operation: there is no property state"},
		"ANumberThatMustBeAText":    {200, `{"targetId": 4711}`, "Operation.targetId: must be a text"},
		"ATextThatIsNoNumber":       {200, `{"targetId": "vm-1"}`, `Operation.targetId: invalid value "vm-1"`},
		"ANumberThatIsAText":        {200, `{"progress": "100"}`, "Operation.progress: must be a number"},
		"NoJSON":                    {200, "OK", "the body is no JSON"},
		"AnError":                   {404, failure, ""},
		"AnErrorOfAnotherStatus":    {403, failure, "error.code is 404, and the status is 403"},
		"AnErrorWithoutAReason":     {404, `{"error": {"code": 404, "message": "m", "errors": [{"domain": "global", "message": "m"}]}}`, "has no reason"},
		"AnErrorWithoutErrors":      {404, `{"error": {"code": 404, "message": "m"}}`, "has no errors"},
		"AnErrorOfAnotherForm":      {404, `{"message": "m"}`, "has no error"},
	}
	c, err := request(model(t), http.MethodPost, "projects/p/zones/z/instances", instance)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Answer(tc.status, []byte(tc.body))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
