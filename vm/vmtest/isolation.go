package vmtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"refbox/vm"
)

// isolation: from inside a machine nothing of the host is reached, by none of its
// addresses, and no other machine. Only listeners of the test's own are tried, each
// of which the host itself reaches.
func (s *suite) isolation(t *testing.T, m, other vm.Machine) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "reached") }))
	})
	defer served.Wait()
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	urls := []string{"http://10.0.2.2:" + port}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip := a.(*net.IPNet).IP.To4()
		if ip == nil {
			continue
		}
		url := fmt.Sprintf("http://%s:%s", ip, port)
		resp, err := http.Get(url)
		if err != nil {
			t.Fatalf("the host itself cannot reach %s: %v", url, err)
		}
		resp.Body.Close()
		urls = append(urls, url)
	}
	otherAddr, err := other.Addr(8080)
	if err != nil {
		t.Fatal(err)
	}
	_, otherPort, _ := net.SplitHostPort(otherAddr)
	if err := s.ping(other); err != nil {
		t.Fatal("the host itself cannot reach the other machine: ", err)
	}
	if got := s.run(t, m, "curl -s -m 5 http://127.0.0.1:8080/ping"); got != "pong" {
		t.Fatalf("the guest cannot reach itself: %q", got)
	}
	for _, url := range append(urls, "http://10.0.2.2:"+otherPort+"/ping") {
		r, err := m.Guest().Run(s.ctx(t), []string{"curl", "-s", "-m", "2", url}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Exit == 0 {
			t.Errorf("the guest reached %s: %q", url, r.Stdout)
		}
	}
}
