//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A step is a command that runs to its end before the next one.
type step struct {
	name string
	args []string
}

// A service is a process that runs until the OpenStack is stopped.
type service struct {
	name string
	args []string
	// port that it listens on once it is up, 0 if it has none.
	port int
}

// password of the administrator. Only the services reach Keystone by a network.
const password = "openstack"

// wsgi returns the command of an API that is a WSGI application. Without the header and the single thread clients see
// connections that are reset.
func wsgi(port int, file string) []string {
	return strings.Fields(fmt.Sprintf("uwsgi --plugin python3 --http-socket 127.0.0.1:%d --wsgi-file %s --processes 2 --threads 1 --lazy-apps --need-app --buffer-size 65535 --master --die-on-term --log-5xx --disable-logging", port, file))
}

var (
	// The agent of Neutron needs an interface with a MAC address, for its ID.
	network = []step{
		{"loopback", strings.Fields("ip link set lo up")},
		{"interface", strings.Fields("ip link add name own type bridge")},
	}

	// stores have the state of the other services, and start first.
	stores = []service{
		{"mariadb", strings.Fields("mariadbd --user=mysql --bind-address=127.0.0.1 --port=3306 --init-file=/srv/openstack.sql"), 3306},
		{"rabbitmq", strings.Fields("env RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODENAME=rabbit@localhost ERL_EPMD_ADDRESS=127.0.0.1 rabbitmq-server"), 5672},
		{"memcached", strings.Fields("memcached -u memcache -l 127.0.0.1 -p 11211"), 11211},
	}

	// schemas of the databases. Those in different lists are independent of each other.
	schemas = [][]step{
		{
			{"keystone-db", strings.Fields("keystone-manage db_sync")},
			{"keystone-fernet", strings.Fields("keystone-manage fernet_setup --keystone-user root --keystone-group root")},
			{"keystone-credential", strings.Fields("keystone-manage credential_setup --keystone-user root --keystone-group root")},
			{"keystone-bootstrap", strings.Fields("keystone-manage bootstrap --bootstrap-password " + password +
				" --bootstrap-region-id RegionOne --bootstrap-internal-url http://127.0.0.1:5000/v3 --bootstrap-public-url http://127.0.0.1:5000/v3")},
			{"placement-db", strings.Fields("placement-manage db sync")},
			{"glance-db", strings.Fields("glance-manage db_sync")},
		},
		{
			{"nova-api-db", strings.Fields("nova-manage api_db sync")},
			{"nova-cell0", strings.Fields("nova-manage cell_v2 map_cell0")},
			{"nova-cell1", strings.Fields("nova-manage cell_v2 create_cell --name cell1")},
			{"nova-db", strings.Fields("nova-manage db sync")},
			{"neutron-db", strings.Fields("neutron-db-manage --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini upgrade heads")},
		},
	}

	keystone = service{"keystone", append(wsgi(5000, "/usr/bin/keystone-wsgi-public"), "--add-header", "Connection: close"), 5000}

	// services need the catalog of Keystone.
	services = []service{
		{"placement", append(wsgi(8778, "/usr/bin/placement-api"), "--add-header", "Connection: close"), 8778},
		{"glance", strings.Fields("glance-api --config-file /etc/glance/glance-api.conf"), 9292},
		{"neutron", strings.Fields("neutron-server --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini"), 9696},
		{"neutron-agent", strings.Fields("neutron-linuxbridge-agent --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/linuxbridge_agent.ini"), 0},
		{"nova-api", strings.Fields("nova-api --config-file /etc/nova/nova.conf"), 8774},
		{"nova-conductor", strings.Fields("nova-conductor --config-file /etc/nova/nova.conf"), 0},
		{"nova-scheduler", strings.Fields("nova-scheduler --config-file /etc/nova/nova.conf"), 0},
		// The package's nova-compute.conf would choose libvirt.
		{"nova-compute", strings.Fields("nova-compute --config-file /etc/nova/nova.conf"), 0},
	}
)

// openstack is the OpenStack as its first process sees it.
type openstack struct {
	root, logs string
	// failed gets the services that end. It has room for all of them.
	failed chan error
}

// start brings all services up.
func (o *openstack) start(ctx context.Context) error {
	for _, s := range network {
		if err := o.do(ctx, s); err != nil {
			return err
		}
	}
	if err := o.launch(ctx, stores...); err != nil {
		return err
	}
	done := make(chan error, len(schemas))
	for _, steps := range schemas {
		go func() {
			for _, s := range steps {
				if err := o.do(ctx, s); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	var problems []error
	for range schemas {
		problems = append(problems, <-done)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := o.launch(ctx, keystone); err != nil {
		return err
	}
	if err := fillCatalog(ctx); err != nil {
		return fmt.Errorf("cannot fill the catalog: %w", err)
	}
	if err := o.launch(ctx, services...); err != nil {
		return err
	}
	return o.awaitHosts(ctx)
}

func (o *openstack) log(name string) (io.WriteCloser, error) {
	return os.OpenFile(filepath.Join(o.logs, name+".log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
}

// do runs a step to its end.
func (o *openstack) do(ctx context.Context, s step) error {
	began := time.Now()
	log, err := o.log(s.name)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := o.command(ctx, s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(s.args, " "), err, o.endOf(s.name))
	}
	fmt.Fprintf(os.Stderr, "openstack: %s took %s\n", s.name, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// launch starts services, and waits until each listens.
func (o *openstack) launch(ctx context.Context, all ...service) error {
	for _, s := range all {
		log, err := o.log(s.name)
		if err != nil {
			return err
		}
		cmd := o.command(ctx, s.args...)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		go func() {
			err := cmd.Wait()
			o.failed <- fmt.Errorf("%s ended: %w: %s", s.name, err, o.endOf(s.name))
		}()
	}
	for _, s := range all {
		if s.port == 0 {
			continue
		}
		if err := o.await(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// poll is the interval of polling.
const poll = 200 * time.Millisecond

// await waits until a service listens, for as long as no service ends.
func (o *openstack) await(ctx context.Context, s service) error {
	for {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(s.port)))
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-o.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// endOf returns the end of a log.
func (o *openstack) endOf(name string) string {
	b, _ := os.ReadFile(filepath.Join(o.logs, name+".log"))
	const most = 2000
	return string(b[max(0, len(b)-most):])
}
