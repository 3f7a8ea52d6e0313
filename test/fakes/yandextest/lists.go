package yandextest

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strconv"

	compute "github.com/yandex-cloud/go-genproto/yandex/cloud/compute/v1"
	vpc "github.com/yandex-cloud/go-genproto/yandex/cloud/vpc/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultPage and maxPage are the numbers of items of a page, of the services' page_size.
const defaultPage, maxPage = 100, 1000

type instances struct {
	compute.UnimplementedInstanceServiceServer
	server *Server
}

// List Instances, without their metadata, as the service does.
func (i instances) List(_ context.Context, req *compute.ListInstancesRequest) (*compute.ListInstancesResponse, error) {
	found, next, err := page(req, i.server.opts.State(req.GetFolderId()).Instances)
	return &compute.ListInstancesResponse{Instances: found, NextPageToken: next}, err
}

type disks struct {
	compute.UnimplementedDiskServiceServer
	server *Server
}

func (d disks) List(_ context.Context, req *compute.ListDisksRequest) (*compute.ListDisksResponse, error) {
	found, next, err := page(req, d.server.opts.State(req.GetFolderId()).Disks)
	return &compute.ListDisksResponse{Disks: found, NextPageToken: next}, err
}

type addresses struct {
	vpc.UnimplementedAddressServiceServer
	server *Server
}

func (a addresses) List(_ context.Context, req *vpc.ListAddressesRequest) (*vpc.ListAddressesResponse, error) {
	found, next, err := page(req, a.server.opts.State(req.GetFolderId()).Addresses)
	return &vpc.ListAddressesResponse{Addresses: found, NextPageToken: next}, err
}

// page of items in the order of their IDs. A token holds the ID after which the page begins.
func page[T interface{ GetId() string }](req list, items []T) ([]T, string, error) {
	items = slices.SortedFunc(slices.Values(items), func(a, b T) int { return cmp.Compare(a.GetId(), b.GetId()) })
	if t := req.GetPageToken(); t != "" {
		after, err := base64.URLEncoding.DecodeString(t)
		if err != nil {
			return nil, "", status.Error(codes.InvalidArgument, "Validation failed:\n  - page_token: Invalid page token "+strconv.Quote(t))
		}
		items = slices.DeleteFunc(items, func(i T) bool { return i.GetId() <= string(after) })
	}
	size := int(cmp.Or(req.GetPageSize(), defaultPage))
	if len(items) <= size {
		return items, "", nil
	}
	return items[:size], base64.URLEncoding.EncodeToString([]byte(items[size-1].GetId())), nil
}
