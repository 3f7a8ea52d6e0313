package conformance

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"

	compute "github.com/yandex-cloud/go-genproto/yandex/cloud/compute/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/drover-dev/drover/test/conformance/simulator"
	"github.com/drover-dev/drover/test/fakes/yandextest"
)

const yandexFolder = "b1gexamplefolder0000"

// startYandex starts a fake of the API, with a service account that may view the folder.
func startYandex(t *testing.T, s *simulated, fleet string) fakeAPI {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	const keyID, account = "ajeexamplekey0000000", "ajeexampleaccount000"
	server, err := yandextest.Start(yandextest.Options{
		State: func(folder string) yandextest.Folder {
			if folder != yandexFolder {
				return yandextest.Folder{}
			}
			return yandextest.Folder{Instances: yandexInstances(s, fleet)}
		},
		Keys: func() map[string]yandextest.Key {
			return map[string]yandextest.Key{keyID: {ServiceAccount: account, Public: &private.PublicKey, Folders: []string{yandexFolder}}}
		},
		RateLimit: 100, Refill: 50 * time.Millisecond,
	})
	must(t, err)
	t.Cleanup(server.Stop)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	secret, err := json.Marshal(map[string]string{
		"id": keyID, "service_account_id": account, "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	must(t, err)
	return fakeAPI{
		secret:      secret,
		spec:        map[string]any{"folderID": yandexFolder, "endpoint": "https://" + server.Address, "caBundle": base64.StdEncoding.EncodeToString(server.CACertificates)},
		forProvider: func(name string) map[string]any { return map[string]any{"name": name, "hostname": name} },
	}
}

var yandexStatuses = map[simulator.State]compute.Instance_Status{
	simulator.Starting: compute.Instance_PROVISIONING, simulator.Running: compute.Instance_RUNNING, simulator.Interrupted: compute.Instance_STOPPED,
}

func yandexInstances(s *simulated, fleet string) []*compute.Instance {
	var out []*compute.Instance
	for _, vm := range s.simulator.VMs(fleet) {
		out = append(out, &compute.Instance{
			Id: vm.ID, FolderId: yandexFolder, Name: vm.Name, Labels: vm.Tags, Status: yandexStatuses[vm.State], CreatedAt: timestamppb.New(vm.CreatedAt),
		})
	}
	return out
}
