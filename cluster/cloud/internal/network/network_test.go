package network

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// arp returns the frame by which a VM requests the hardware address of ip.
func arp(t *testing.T, from, ip string) []byte {
	t.Helper()
	mac, err := net.ParseMAC(MAC(from))
	if err != nil {
		t.Fatal(err)
	}
	head, err := hex.DecodeString("0806" + "0001080006040001")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join([][]byte{bytes.Repeat([]byte{0xff}, 6), mac, head, mac, net.ParseIP(from).To4(), make([]byte, 6), net.ParseIP(ip).To4()}, nil)
}

func TestGatewayAndHostAnswer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "net.sock")
	const vm = "10.200.0.10"
	n, err := Open(socket, Packets, vm, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	// A VM that reboots connects again.
	for range 2 {
		conn, err := net.Dial("unixpacket", socket)
		if err != nil {
			t.Fatal(err)
		}
		for _, ip := range []string{Gateway, Host} {
			if _, err := conn.Write(arp(t, vm, ip)); err != nil {
				t.Fatal(err)
			}
			reply := make([]byte, 2048)
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(reply); err != nil {
				t.Fatalf("%s does not answer: %v", ip, err)
			}
			if got := net.IP(reply[28:32]).String(); got != ip {
				t.Errorf("the answer is from %s, want %s", got, ip)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	n.Close()
	if _, err := net.Dial("unixpacket", socket); err == nil {
		t.Error("a closed network can be joined")
	}
}

func TestMAC(t *testing.T) {
	if got := MAC("10.200.1.255"); got != "52:54:0a:c8:01:ff" {
		t.Error(got)
	}
}
