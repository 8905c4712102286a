package vm

import (
	"context"
	"io"
	"net"
	"net/http"
)

// Get asks for a path at a port of the host that leads to a guest, on a connection of
// its own (one that was kept says nothing of the next), and follows nobody elsewhere.
// It reads at most so many bytes of the body. An error says that no whole answer came
// before ctx ended.
func Get(ctx context.Context, addr, path string, most int64) (status int, body string, err error) {
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return Dial(ctx, addr) }},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return 0, "", err
	}
	return res.StatusCode, string(b), nil
}
