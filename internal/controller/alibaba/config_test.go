package alibaba

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"math/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alibabacloud-go/darabonba-openapi/v2/utils"
	"github.com/alibabacloud-go/tea/dara"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/test/fakes"
	fakealibaba "github.com/drover-dev/drover/test/fakes/alibaba"
)

func TestServicesOf(t *testing.T) {
	cases := map[string]struct {
		spec     v1alpha1.ProviderConfigSpec
		ecs, sts string
	}{
		"OfARegion":      {v1alpha1.ProviderConfigSpec{Region: "eu-central-1"}, "https://ecs.eu-central-1.aliyuncs.com", "https://sts.eu-central-1.aliyuncs.com"},
		"OfHangzhou":     {v1alpha1.ProviderConfigSpec{Region: "cn-hangzhou"}, "https://ecs-cn-hangzhou.aliyuncs.com", "https://sts.cn-hangzhou.aliyuncs.com"},
		"OfOneInAVPC":    {v1alpha1.ProviderConfigSpec{Region: "cn-beijing", Endpoint: "https://ecs-vpc.cn-beijing.aliyuncs.com", STSEndpoint: "https://sts-vpc.cn-beijing.aliyuncs.com"}, "https://ecs-vpc.cn-beijing.aliyuncs.com", "https://sts-vpc.cn-beijing.aliyuncs.com"},
		"OfAnotherPort":  {v1alpha1.ProviderConfigSpec{Region: "cn-beijing", Endpoint: "http://127.0.0.1:8080/"}, "http://127.0.0.1:8080", "https://sts.cn-beijing.aliyuncs.com"},
		"OfAnIPv6Server": {v1alpha1.ProviderConfigSpec{Region: "cn-beijing", Endpoint: "http://[::1]:8080"}, "http://[::1]:8080", "https://sts.cn-beijing.aliyuncs.com"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ecs, sts, err := servicesOf(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := ecs.scheme + "://" + ecs.host; got != tc.ecs {
				t.Errorf("ECS is at %s, want %s", got, tc.ecs)
			}
			if got := sts.scheme + "://" + sts.host; got != tc.sts {
				t.Errorf("STS is at %s, want %s", got, tc.sts)
			}
		})
	}
}

func TestStateOf(t *testing.T) {
	locked := func(status, reason string) instance {
		i := instance{Status: status}
		i.OperationLocks.LockReason = append(i.OperationLocks.LockReason, struct{ LockReason string }{reason})
		return i
	}
	cases := map[string]struct {
		i                 instance
		created, finished bool
		want              native.State
	}{
		"AnInstanceThatIsCreated":           {instance{Status: statusPending}, true, false, native.StateCreating},
		"AnInstanceThatStarts":              {instance{Status: statusStarting}, true, false, native.StateCreating},
		"AnInstanceThatRuns":                {instance{Status: statusRunning}, true, true, native.StateRunning},
		"AnInstanceThatWasNeverStarted":     {instance{Status: statusStopped}, true, false, native.StateIncomplete},
		"AnInstanceThatAUserStopped":        {instance{Status: statusStopped}, true, true, native.StateStopped},
		"AnAdoptedInstanceThatIsStopped":    {instance{Status: statusStopped}, false, false, native.StateStopped},
		"AnInstanceThatIsBeingStopped":      {instance{Status: statusStopping}, true, true, native.StateStopped},
		"ASpotInstanceThatIsTakenBack":      {locked(statusRunning, "Recycling"), true, true, native.StateFailed},
		"ASpotInstanceThatIsStoppedByECS":   {locked(statusStopped, "Recycling"), true, true, native.StateFailed},
		"AnInstanceThatIsLockedForPayment":  {locked(statusStopped, "financial"), true, true, native.StateStopped},
		"AnInstanceThatIsLockedForSecurity": {locked(statusRunning, "security"), true, true, native.StateRunning},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(tc.i, tc.created, tc.finished); got != tc.want {
				t.Errorf("the state is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestUserDataAboveTheLimitIsCompressed(t *testing.T) {
	large := strings.Repeat("a line of the user data\n", 3000)
	encoded, err := native.EncodeUserData(large, maxUserData)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != large {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if small, err := native.EncodeUserData("#cloud-config\n", maxUserData); err != nil || small != base64.StdEncoding.EncodeToString([]byte("#cloud-config\n")) {
		t.Errorf("small user data is %q, %v", small, err)
	}
	random := make([]byte, 2*maxUserData)
	rand.New(rand.NewSource(1)).Read(random)
	if _, err := native.EncodeUserData(string(random), maxUserData); err == nil || !strings.Contains(err.Error(), "InvalidRequest: forProvider.userDataSecretRef") || !strings.Contains(err.Error(), "at most 32768 are allowed") {
		t.Errorf("error %v", err)
	}
}

// TestCreatedAtKnowsTheFormatsOfTheAPI tests the two formats: ECS leaves out the seconds.
func TestCreatedAtKnowsTheFormatsOfTheAPI(t *testing.T) {
	for text, want := range map[string]string{"2017-12-10T04:04Z": "2017-12-10T04:04:00Z", "2018-01-01T01:02:58Z": "2018-01-01T01:02:58Z"} {
		if got := createdAt(text).Format(time.RFC3339); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if got := createdAt("soon"); !got.IsZero() {
		t.Errorf("an unknown format is %s", got)
	}
}

// TestTheFakeVerifiesSignatures signs requests with the SDK, and changes one part after that.
func TestTheFakeVerifiesSignatures(t *testing.T) {
	cases := map[string]struct {
		secret string
		change func(*http.Request)
		want   string
	}{
		"AnUnchangedRequest":         {"right", nil, ""},
		"AnotherSecret":              {"wrong", nil, "SignatureDoesNotMatch"},
		"AnotherAction":              {"right", func(r *http.Request) { r.Header.Set("x-acs-action", "DescribeDisks") }, "SignatureDoesNotMatch"},
		"AnotherHost":                {"right", func(r *http.Request) { r.Host, r.URL.Host = "ecs.example.org", "ecs.example.org" }, "SignatureDoesNotMatch"},
		"AnotherBody":                {"right", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("RegionId=cn-beijing")) }, "SignatureDoesNotMatch"},
		"AParameterInTheURL":         {"right", func(r *http.Request) { r.URL.RawQuery = "RegionId=cn-beijing" }, "SignatureDoesNotMatch"},
		"AHeaderThatIsNotSigned":     {"right", func(r *http.Request) { r.Header.Set("x-acs-security-token", "x") }, "SignatureDoesNotMatch"},
		"NoSignature":                {"right", func(r *http.Request) { r.Header.Del("Authorization") }, "MissingAuthorization"},
		"AnotherDate":                {"right", func(r *http.Request) { r.Header.Set("x-acs-date", "2017-01-01T00:00:00Z") }, "SignatureDoesNotMatch"},
		"ASignatureOfAnotherRequest": {"right", func(r *http.Request) { r.Header.Set("x-acs-signature-nonce", "another") }, "SignatureDoesNotMatch"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cloud := fakealibaba.New(fakealibaba.Options{})
			cloud.SetKey(keyID, fakealibaba.Key{Secret: "right", Account: accountID})
			c := callerOf(t, changing{fakes.InMemory(cloud), tc.change}, tc.secret)
			err := c.call(t.Context(), "DescribeInstances", map[string]string{"RegionId": "cn-hangzhou"}, &struct{}{})
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && !hasCode(err, tc.want):
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestASignatureIsAcceptedOnce(t *testing.T) {
	cloud := fakealibaba.New(fakealibaba.Options{})
	cloud.SetKey(keyID, fakealibaba.Key{Secret: "right", Account: accountID})
	twice := repeating{fakes.InMemory(cloud)}
	err := callerOf(t, twice, "right").call(t.Context(), "DescribeInstances", map[string]string{"RegionId": "cn-hangzhou"}, &struct{}{})
	if !hasCode(err, "SignatureNonceUsed") {
		t.Errorf("error %v, want SignatureNonceUsed", err)
	}
}

// TestTheSignatureOfTheDocumentation holds the SDK and the fake to the example in the documentation of the
// signature.
func TestTheSignatureOfTheDocumentation(t *testing.T) {
	r := dara.NewRequest()
	r.Method, r.Pathname = ptr.To(http.MethodPost), ptr.To("/")
	r.Query = map[string]*string{"ImageId": ptr.To("win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"), "RegionId": ptr.To("cn-shanghai")}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	r.Headers = map[string]*string{
		"host": ptr.To("ecs.cn-shanghai.aliyuncs.com"), "x-acs-action": ptr.To("RunInstances"), "x-acs-content-sha256": ptr.To(empty),
		"x-acs-date": ptr.To("2023-10-26T10:22:32Z"), "x-acs-signature-nonce": ptr.To("3156853299f313e23d1673dc12e1703d"), "x-acs-version": ptr.To("2014-05-26"),
	}
	got := *utils.GetAuthorization(r, ptr.To("ACS3-HMAC-SHA256"), ptr.To(empty), ptr.To("YourAccessKeyId"), ptr.To("YourAccessKeySecret"))
	if want := "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"; !strings.HasSuffix(got, "Signature="+want) {
		t.Errorf("the SDK signs %s, want %s", got, want)
	}
}

func TestAnErrorHasNoSignedString(t *testing.T) {
	cloud := fakealibaba.New(fakealibaba.Options{})
	cloud.SetKey(keyID, fakealibaba.Key{Secret: "right", Account: accountID})
	err := callerOf(t, fakes.InMemory(cloud), "wrong").call(t.Context(), "DescribeInstances", map[string]string{"RegionId": "cn-hangzhou"}, &struct{}{})
	if want := "Specified signature is not matched with our calculation (SignatureDoesNotMatch, status 400)"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAPageThatIsNoJSONIsTransient(t *testing.T) {
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>Bad Gateway</html>"))}, nil
	})
	err := classify("cannot create the instance", callerOf(t, next, "right").call(t.Context(), "RunInstances", map[string]string{}, &struct{}{}))
	var e *native.Error
	if !errors.As(err, &e) || e.Class != "Transient" || e.Refused {
		t.Errorf("error %#v, want a Transient one whose result is unknown", err)
	}
}

func TestABatchReadsInstancesWithOneCall(t *testing.T) {
	calls := make(chan []string, 10)
	b := batch{read: func(_ context.Context, ids []string) (map[string]instance, error) {
		calls <- ids
		return map[string]instance{"i-1": {InstanceId: "i-1"}}, nil
	}}
	type result struct {
		exists bool
		err    error
	}
	results := make(chan result, 2)
	for _, id := range []string{"i-1", "i-2"} {
		go func() {
			_, exists, err := b.get(t.Context(), id)
			results <- result{exists, err}
		}()
	}
	existing := 0
	for range 2 {
		r := <-results
		if r.err != nil {
			t.Error(r.err)
		}
		if r.exists {
			existing++
		}
	}
	if existing != 1 || len(calls) > 2 {
		t.Errorf("%d instances exist after %d calls", existing, len(calls))
	}
}

func callerOf(t *testing.T, next http.RoundTripper, secret string) *caller {
	t.Helper()
	c, err := newCaller(v1alpha1.ProviderConfigSpec{Region: "cn-hangzhou"}, credentials{AccessKeyID: keyID, AccessKeySecret: secret}, next, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// changing changes requests after they were signed.
type changing struct {
	next   http.RoundTripper
	change func(*http.Request)
}

func (c changing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if c.change != nil {
		c.change(r)
	}
	return c.next.RoundTrip(r)
}

// repeating sends each request twice, and returns the second response.
type repeating struct{ next http.RoundTripper }

func (c repeating) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var resp *http.Response
	for range 2 {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(strings.NewReader(string(b)))
		if resp, err = c.next.RoundTrip(again); err != nil {
			return nil, err
		}
	}
	return resp, nil
}
