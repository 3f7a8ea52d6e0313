package aws

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"math/rand"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/test/fakes"
	fakeaws "github.com/drover-dev/drover/test/fakes/aws"
	"github.com/drover-dev/drover/test/fakes/awsmodel"
)

func TestKeysAreRequired(t *testing.T) {
	for name, tc := range map[string]struct {
		keys keys
		want string
	}{
		"TheID":     {keys{SecretAccessKey: "s"}, "credentials: accessKeyID: must not be empty"},
		"TheSecret": {keys{AccessKeyID: "a"}, "credentials: secretAccessKey: must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(nil, time.Now)(&v1alpha1.ClusterProviderConfig{}, tc.keys)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestTheIdentityOfThePodIsOnlyForClusterProviderConfigs protects the rights of the provider's pod from users of a namespace.
func TestTheIdentityOfThePodIsOnlyForClusterProviderConfigs(t *testing.T) {
	pc := &v1alpha1.ProviderConfig{}
	pc.Namespace, pc.Spec.Region, pc.Spec.Credentials.Source = "team-a", "eu-west-1", v1alpha1.CredentialsInjectedIdentity
	if _, err := open(nil, time.Now)(pc, keys{}); err == nil || !strings.Contains(err.Error(), "only a ClusterProviderConfig uses the identity") {
		t.Errorf("error %v", err)
	}
}

// podIdentity returns a configuration with the identity of the pod, whose calls reach the server.
func podIdentity(url string) client.Object {
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec = v1alpha1.ProviderConfigSpec{Region: "eu-west-1", Endpoint: url, STSEndpoint: url, Credentials: v1alpha1.Credentials{Source: v1alpha1.CredentialsInjectedIdentity}}
	return pc
}

// TestTheRoleOfAServiceAccountNeedsNoKey gives the pod the files and variables that EKS gives it for a service account with a
// role (IRSA).
func TestTheRoleOfAServiceAccountNeedsNoKey(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	server := httptest.NewServer(l.judge)
	t.Cleanup(server.Close)
	l.TrustWebToken("eyJ-of-the-service-account", roleARN)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("eyJ-of-the-service-account"), 0o600); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"AWS_ROLE_ARN": roleARN, "AWS_WEB_IDENTITY_TOKEN_FILE": file, "AWS_ENDPOINT_URL_STS": server.URL, "AWS_CA_BUNDLE": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": file + "-none", "AWS_SHARED_CREDENTIALS_FILE": file + "-none",
	} {
		t.Setenv(k, v)
	}
	a, err := open(nil, time.Now)(podIdentity(server.URL), keys{})
	if err != nil {
		t.Fatal(err)
	}
	if place, err := a.Place(t.Context()); err != nil || place != "account 210987654321, region eu-west-1" {
		t.Errorf("place %q, %v", place, err)
	}
	if _, complete, err := a.List(t.Context(), "any"); err != nil || !complete {
		t.Errorf("complete %t, %v", complete, err)
	}
}

func TestAPodWithoutAnIdentityIsReported(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for k, v := range map[string]string{
		"AWS_ROLE_ARN": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_CA_BUNDLE": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none,
	} {
		t.Setenv(k, v)
	}
	a, err := open(nil, time.Now)(podIdentity("http://127.0.0.1:1"), keys{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Place(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "PermissionDenied: cannot read the ID of the account: there are no credentials: ") {
		t.Errorf("error %v", err)
	}
}

func TestStateOf(t *testing.T) {
	in := func(state types.InstanceStateName, spot bool) types.Instance {
		i := types.Instance{State: &types.InstanceState{Name: state}, NetworkInterfaces: []types.InstanceNetworkInterface{{SourceDestCheck: aws.Bool(true)}}}
		if spot {
			i.InstanceLifecycle = types.InstanceLifecycleTypeSpot
		}
		return i
	}
	cases := map[string]struct {
		i    types.Instance
		f    facts
		want native.State
	}{
		"AnInstanceThatStarts":                {in("pending", false), facts{created: true, checks: true}, native.StateCreating},
		"AnInstanceThatRuns":                  {in("running", false), facts{created: true, checks: true}, native.StateRunning},
		"AnInstanceThatStillHasTheCheck":      {in("running", false), facts{created: true}, native.StateIncomplete},
		"AnInstanceThatRanIsNotChanged":       {in("running", false), facts{created: true, finished: true}, native.StateRunning},
		"AnAdoptedInstanceIsNotChanged":       {in("running", false), facts{}, native.StateRunning},
		"AnInstanceThatIsBeingStopped":        {in("stopping", false), facts{created: true, finished: true, checks: true}, native.StateStopped},
		"AnInstanceThatAUserStopped":          {in("stopped", false), facts{created: true, finished: true, checks: true}, native.StateStopped},
		"AnInstanceThatEnds":                  {in("shutting-down", false), facts{created: true, finished: true, checks: true}, native.StateDeleting},
		"ASpotInstanceThatStarts":             {in("pending", true), facts{created: true, checks: true}, native.StateCreating},
		"ASpotInstanceThatEC2Stopped":         {in("stopped", true), facts{created: true, finished: true, checks: true}, native.StateFailed},
		"ASpotInstanceThatEC2WillTakeBack":    {in("running", true), facts{created: true, finished: true, checks: true, notice: "marked-for-termination"}, native.StateFailed},
		"ASpotInstanceThatRunsWithoutANotice": {in("running", true), facts{created: true, finished: true, checks: true}, native.StateRunning},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(tc.i, tc.f); got != tc.want {
				t.Errorf("the state is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestATokenNamesTheAttempt(t *testing.T) {
	for last, want := range map[string]string{"": "uid-1-1", "uid-1-1": "uid-1-2", "uid-1-41": "uid-1-42", "of-another": "uid-1-1"} {
		if got := nextToken("uid-1", last); got != want {
			t.Errorf("after %q comes %q, want %q", last, got, want)
		}
	}
}

func TestARepeatedRequestEqualsTheFirst(t *testing.T) {
	p := newVM("vm-1", map[string]string{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}).Spec.ForProvider
	p.VolumeTags = map[string]string{"f": "6", "g": "7"}
	first := tagsOf(p, "uid")
	for range 20 {
		for n, spec := range tagsOf(p, "uid") {
			for i, tag := range spec.Tags {
				if *tag.Key != *first[n].Tags[i].Key {
					t.Fatal("the order of tags differs, so that EC2 refuses the token")
				}
			}
		}
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
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, []byte(large)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	random := make([]byte, 2*maxUserData)
	rand.New(rand.NewSource(1)).Read(random)
	if _, err := native.EncodeUserData(string(random), maxUserData); err == nil || !strings.Contains(err.Error(), "InvalidRequest: forProvider.userDataSecretRef") || !strings.Contains(err.Error(), "at most 16384 are allowed") {
		t.Errorf("error %v", err)
	}
}

func TestASpecOfASubnetOnlyNeedsNoZone(t *testing.T) {
	p := newVM("vm-1", nil).Spec.ForProvider
	p.Subnets = []v1alpha1.ZoneSubnet{{AvailabilityZone: "eu-west-1b", SubnetID: "subnet-b"}}
	if got := subnetOf(p); got != "subnet-a" {
		t.Errorf("subnet %s", got)
	}
	if p.AvailabilityZone = ptr.To("eu-west-1b"); subnetOf(p) != "subnet-b" {
		t.Errorf("subnet %s of zone b", subnetOf(p))
	}
}

func TestATokenIsReplacedOnlyIfItsInstanceWouldBeShown(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	now := time.Now().UTC().Truncate(time.Second)
	for name, tc := range map[string]struct {
		pending, failed, chosen time.Duration // Times ago, 0 for none.
		want, err               string
	}{
		"AfterTheFirstCreation":                  {0, 0, 0, "uid-1", ""},
		"TheCreationWasRefused":                  {2 * time.Minute, time.Minute, 2 * time.Minute, "uid-2", ""},
		"TheResultIsUnknown":                     {time.Minute, 0, time.Minute, "uid-1", ""},
		"TheResultIsUnknownAfterARefusal":        {time.Minute, time.Hour, time.Hour, "uid-1", ""},
		"TheInstanceWouldBeShown":                {settle, 0, settle, "uid-2", ""},
		"ItIsOldAndTheInstanceMayNotBeShown":     {time.Minute, 0, tokenFor, "uid-1", "the ClientToken is too old"},
		"ItIsOldAndItsInstanceWouldBeShownByNow": {settle, 0, tokenFor, "uid-2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			account, err := open(fakes.InMemory(l.judge), func() time.Time { return now })(cloudOf(l).Config, l.credentials())
			if err != nil {
				t.Fatal(err)
			}
			vm := newVM("vm-1", nil)
			vm.UID = "uid"
			if tc.chosen > 0 {
				vm.SetAnnotations(map[string]string{v1alpha1.AnnotationClientToken: "uid-1", v1alpha1.AnnotationClientTokenSince: now.Add(-tc.chosen).Format(time.RFC3339)})
				meta.SetExternalCreatePending(vm, now.Add(-tc.pending))
			}
			if tc.failed > 0 {
				meta.SetExternalCreateFailed(vm, now.Add(-tc.failed))
			}
			err = account.Prepare(t.Context(), vm)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if got := tokenOf(vm).text; got != tc.want {
				t.Errorf("the token is %q, want %q", got, tc.want)
			}
		})
	}
}
