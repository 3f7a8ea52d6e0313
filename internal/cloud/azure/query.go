package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// perPage is the maximum number of rows in an answer of Resource Graph.
const perPage = 1000

// tagValue matches the tag values that machine-upjet-azure.yaml writes. No such text needs to be escaped
// in a query.
var tagValue = regexp.MustCompile(`^[a-zA-Z0-9 _.:/=+@-]{1,256}$`)

// A row is a row of an answer of Resource Graph, with the names that the queries give its columns.
// The names of columns about the user of a resource begin with "of", so that none is a word of the
// query language.
type row struct {
	ID                string            `json:"id"`
	Name              string            `json:"name"`
	Type              string            `json:"type"`
	Tags              map[string]string `json:"tags"`
	ProvisioningState string            `json:"provisioningState"`
	PowerState        string            `json:"powerState"`
	CreatedAt         string            `json:"createdAt"`
	ManagedBy         string            `json:"managedBy"`
	OfMachine         string            `json:"ofMachine"`
	OfEndpoint        string            `json:"ofEndpoint"`
	OfService         string            `json:"ofService"`
	OfConfiguration   string            `json:"ofConfiguration"`
	OfGateway         string            `json:"ofGateway"`
}

// tagged is the condition of the resources of some types that carry the tag of an installation.
func tagged(types []string, installation string) (string, error) {
	if !tagValue.MatchString(installation) {
		return "", &invalidError{"installation", installation, "1 to 256 letters, digits, spaces or _.:/=+@-"}
	}
	return fmt.Sprintf("type in~ (%s) and tostring(tags['%s']) == '%s'", quoted(types), machinev1alpha1.TagInstallation, installation), nil
}

func quoted(texts []string) string { return "'" + strings.Join(texts, "', '") + "'" }

// queryFor returns the query for the resources that fulfill a condition. It has an order, because
// pages of an unordered list may lack some rows and repeat other rows. It has the ID, because
// Resource Graph makes no pages without it.
func queryFor(condition, columns string) string {
	return fmt.Sprintf("resources | where %s | project id, %s | order by id asc", condition, columns)
}

// rows returns the rows of all pages of a query. Complete is false if Resource Graph cut the answer
// off, or if the pages do not fit together because the resources changed between two of them.
func (a *Subscription) rows(ctx context.Context, query string) (rows []row, complete bool, err error) {
	seen, totals := map[string]bool{}, map[int64]bool{}
	for more := (*string)(nil); ; {
		page, err := a.graph.Resources(ctx, armresourcegraph.QueryRequest{
			Query:         &query,
			Subscriptions: []*string{&a.ID},
			Options:       &armresourcegraph.QueryRequestOptions{ResultFormat: to.Ptr(armresourcegraph.ResultFormatObjectArray), Top: to.Ptr[int32](perPage), SkipToken: more},
		}, nil)
		if err != nil {
			return nil, false, describe(err)
		}
		found, err := decode(page.Data)
		if err != nil {
			return nil, false, err
		}
		for _, r := range found {
			if seen[r.ID] {
				return nil, false, nil
			}
			seen[r.ID] = true
		}
		rows = append(rows, found...)
		// If a row goes away between two pages, the next page begins one row too late.
		if totals[ptr.Deref(page.TotalRecords, -1)] = true; len(totals) > 1 {
			return nil, false, nil
		}
		if more = page.SkipToken; more != nil && *more != "" {
			continue
		}
		cut := page.ResultTruncated != nil && *page.ResultTruncated == armresourcegraph.ResultTruncatedTrue
		return rows, !cut && totals[int64(len(rows))], nil
	}
}

// decode the rows of a page, each of which the SDK has as a map.
func decode(data any) ([]row, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("cannot read the answer of Azure Resource Graph: %w", err)
	}
	return rows, nil
}
