package azure

import (
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Headers of an answer: see
// https://learn.microsoft.com/azure/governance/resource-graph/concepts/guidance-for-throttled-requests.
const (
	headerRetryAfter = "Retry-After"
	headerQuotaReset = "x-ms-user-quota-resets-after" // hh:mm:ss
)

// quotaPolicy translates the time until the quota of Resource Graph resets into the header that the
// retries of the SDK respect.
type quotaPolicy struct{}

func (quotaPolicy) Do(req *policy.Request) (*http.Response, error) {
	resp, err := req.Next()
	if err == nil && resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get(headerRetryAfter) == "" {
		if d := quotaReset(resp.Header.Get(headerQuotaReset)); d > 0 {
			resp.Header.Set(headerRetryAfter, fmt.Sprint(int(d.Seconds())))
		}
	}
	return resp, err
}

func quotaReset(text string) time.Duration {
	var h, m, s int
	if n, _ := fmt.Sscanf(text, "%d:%d:%d", &h, &m, &s); n != 3 {
		return 0
	}
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
}
