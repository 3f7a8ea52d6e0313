package aws

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	fakeaws "github.com/drover-dev/drover/test/fakes/aws"
	"github.com/drover-dev/drover/test/fakes/awsmodel"
)

// rewriting changes the parameters of requests.
type rewriting struct {
	fake   http.Handler
	change func(url.Values)
}

func (r rewriting) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.change == nil {
		return fakes.InMemory(r.fake).RoundTrip(req)
	}
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(b))
	if err != nil {
		return nil, err
	}
	r.change(form)
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(strings.NewReader(form.Encode()))
	return fakes.InMemory(r.fake).RoundTrip(req)
}

// TestAmazonsModelRefusesARequestThatIsWrong changes the list request of the provider, and expects the judge to report it.
func TestAmazonsModelRefusesARequestThatIsWrong(t *testing.T) {
	m := awsmodel.Load(t)
	for name, tc := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"AsItIs":             {nil, ""},
		"AnUnknownParameter": {func(f url.Values) { f.Set("Zone", "a") }, "the model has no parameter Zone"},
		"AMisspelledMember":  {func(f url.Values) { f.Set("Filter.1.Values.1", "x") }, "DescribeInstances.Filter.1: the model has no parameter Values"},
		"AnotherType":        {func(f url.Values) { f.Set("MaxResults", "many") }, `DescribeInstances.MaxResults: "many" is no integer`},
		"AListWithAGap":      {func(f url.Values) { f.Set("InstanceId.2", "i-1") }, "DescribeInstances.InstanceId: the items must have the numbers 1 to 1"},
		"AnUnknownOperation": {func(f url.Values) { f.Set("Action", "ListInstances") }, `the model has no operation "ListInstances"`},
		"AMissingParameter":  {func(f url.Values) { clear(f); f.Set("Action", "TerminateInstances"); f.Set("Version", "2016-11-15") }, "TerminateInstances: the required parameter InstanceId is missing"},
		"AnUnknownEnumerated": {func(f url.Values) {
			clear(f)
			f.Set("Action", "RunInstances")
			f.Set("Version", "2016-11-15")
			f.Set("MinCount", "1")
			f.Set("MaxCount", "1")
			f.Set("BlockDeviceMapping.1.Ebs.VolumeType", "gp4")
		}, `RunInstances.BlockDeviceMapping.1.Ebs.VolumeType: "gp4" is none of`},
	} {
		t.Run(name, func(t *testing.T) {
			var reported []string
			l := newLab(t, m, fakeaws.Options{})
			judge := awsmodel.NewJudge(m, l.Cloud, func(err error) { reported = append(reported, err.Error()) })
			account, err := open(rewriting{judge, tc.change}, time.Now)(cloudOf(l).Config, l.credentials())
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = account.List(t.Context(), "any")
			if (tc.change == nil) != (err == nil) {
				t.Errorf("error %v", err)
			}
			if tc.want == "" && len(reported) > 0 || tc.want != "" && !strings.Contains(strings.Join(reported, "\n"), tc.want) {
				t.Errorf("reported %q, want %q", reported, tc.want)
			}
		})
	}
}

// TestAmazonsModelRefusesAResponseThatIsWrong has a fake respond with something else than the model has.
func TestAmazonsModelRefusesAResponseThatIsWrong(t *testing.T) {
	m := awsmodel.Load(t)
	for name, tc := range map[string]struct{ body, want string }{
		"NoInstances":       {`<reservationSet/>`, ""},
		"AnUnknownElement":  {`<reservations/>`, "DescribeInstances: the model has no element reservations"},
		"AnotherItem":       {`<reservationSet><member/></reservationSet>`, "an item of the list is member, want item"},
		"AnUnknownState":    {`<reservationSet><item><instancesSet><item><instanceState><name>Running</name></instanceState></item></instancesSet></item></reservationSet>`, `"Running" is none of`},
		"ATimeWithoutAZone": {`<reservationSet><item><instancesSet><item><launchTime>yesterday</launchTime></item></instancesSet></item></reservationSet>`, `"yesterday" is no timestamp`},
	} {
		t.Run(name, func(t *testing.T) {
			err := m.EC2.Answer("DescribeInstances", []byte(`<DescribeInstancesResponse><requestId>1</requestId>`+tc.body+`</DescribeInstancesResponse>`))
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
