package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"refbox/vm"
)

const maxBody = 1 << 20

// httpClient dials inside the cluster. A transport goes on dialling when the
// request that asked for it has been given up; owner ends that.
func (b *boot) httpClient(owner context.Context) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(owner, cancel)()
				return b.dial(ctx, addr)
			},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// httpFailure names the reason why there was no response.
func httpFailure(ctx context.Context, err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "name not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ENETUNREACH):
		return "unreachable"
	case ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	return "reset" // the connection ended without an answer
}

// request makes one HTTP request from inside the guest.
func (b *boot) request(ctx context.Context, r vm.HTTPRequest) (vm.HTTPResult, error) {
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return vm.HTTPResult{}, err
	}
	resp, err := b.httpClient(ctx).Do(req)
	if err != nil {
		return vm.HTTPResult{Err: httpFailure(ctx, err)}, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return vm.HTTPResult{Err: httpFailure(ctx, err)}, nil
	}
	return vm.HTTPResult{Status: resp.StatusCode, Body: body}, nil
}

func toolCurl(t *run) int {
	// flags does not do: -d and -H repeat.
	var (
		method, output, format string
		urls                   []string
		body                   []byte
		send, fail, silent     bool
		show, head, include    bool
		follow                 bool
		timeout                time.Duration
		retries                int
	)
	header := http.Header{}
	takes := map[string]string{"request": "X", "data": "d", "data-binary": "b", "data-raw": "r", "output": "o", "write-out": "w", "max-time": "m",
		"header": "H", "connect-timeout": "c", "user-agent": "A", "retry": "R", "retry-delay": "?", "upload-file": "T", "url": "u"}
	plain := map[string]string{"silent": "s", "show-error": "S", "fail": "f", "head": "I", "include": "i", "location": "L", "fail-with-body": "f"}
	option := func(c, v string) error {
		switch c {
		case "X":
			method = v
		case "d", "b", "r":
			data := []byte(v)
			if strings.HasPrefix(v, "@") && c != "r" {
				var err error
				if data, err = t.readInput(v[1:]); err != nil {
					return err
				}
				if c == "d" {
					data = bytes.Map(func(r rune) rune {
						if r == '\n' || r == '\r' {
							return -1
						}
						return r
					}, data)
				}
			}
			if send {
				body = append(append(body, '&'), data...)
			} else {
				body = data
			}
			send = true
		case "T":
			data, err := t.readInput(v)
			if err != nil {
				return err
			}
			body, method = data, cmpOr(method, http.MethodPut)
		case "o":
			output = v
		case "w":
			format = v
		case "m":
			timeout, _ = seconds(v)
		case "H":
			k, val, _ := strings.Cut(v, ":")
			header.Add(k, strings.TrimSpace(val))
		case "R":
			_, _ = fmt.Sscan(v, &retries)
		case "u":
			urls = append(urls, v)
		case "s":
			silent = true
		case "S":
			show = true
		case "f":
			fail = true
		case "I":
			head = true
		case "i":
			include = true
		case "L":
			follow = true
		}
		return nil
	}
	for i := 0; i < len(t.args); i++ {
		a := t.args[i]
		value := func() string {
			if i+1 < len(t.args) {
				i++
				return t.args[i]
			}
			return ""
		}
		var err error
		switch {
		case strings.HasPrefix(a, "--"):
			name, v, ok := strings.Cut(a[2:], "=")
			if c := takes[name]; c != "" {
				if !ok {
					v = value()
				}
				err = option(c, v)
			} else {
				err = option(plain[name], "")
			}
		case len(a) > 1 && a[0] == '-':
			for j := 1; j < len(a); j++ {
				c := a[j : j+1]
				if !strings.Contains("XdowmHATux", c) {
					err = option(c, "")
					continue
				}
				v := a[j+1:]
				if v == "" {
					v = value()
				}
				err = option(c, v)
				break
			}
		default:
			urls = append(urls, a)
		}
		if err != nil {
			return t.fail(26, "%s", errText(err))
		}
	}
	if len(urls) == 0 {
		return t.fail(2, "no URL specified")
	}
	code := 0
	for _, u := range urls {
		for try := 0; ; try++ {
			code = t.fetch(u, fetchSpec{method: method, body: body, send: send, head: head, include: include, follow: follow,
				header: header, timeout: timeout, fail: fail, quiet: silent && !show, output: output, format: format})
			if code == 0 || try >= retries || sleep(t.ctx, 100*time.Millisecond) != nil {
				break
			}
		}
	}
	return code
}

type fetchSpec struct {
	method, output, format                   string
	body                                     []byte
	send, head, include, follow, fail, quiet bool
	header                                   http.Header
	timeout                                  time.Duration
}

func (t *run) fetch(target string, f fetchSpec) int {
	ctx := t.ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	method := f.method
	switch {
	case method != "":
	case f.head:
		method = http.MethodHead
	case f.send:
		method = http.MethodPost
	default:
		method = http.MethodGet
	}
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	complain := func(code int, format string, args ...any) int {
		if !f.quiet {
			t.say(0, "curl: (%d) "+format, append([]any{code}, args...)...)
		}
		return code
	}
	began := time.Now()
	writeOut := func(status int, size int) {
		if f.format != "" {
			t.printf("%s", strings.NewReplacer("%{http_code}", fmt.Sprintf("%03d", status), "%{response_code}", fmt.Sprintf("%03d", status),
				"%{size_download}", fmt.Sprint(size), "%{time_total}", fmt.Sprintf("%.6f", time.Since(began).Seconds()), `\n`, "\n", `\t`, "\t").Replace(f.format))
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(f.body))
	if err != nil || req.URL.Scheme != "http" {
		writeOut(0, 0)
		return complain(3, "URL using bad/illegal format or missing URL")
	}
	req.Header = f.header.Clone()
	if f.send && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if h := req.Header.Get("Host"); h != "" {
		req.Host = h
	}
	client := t.b.httpClient(ctx)
	if f.follow {
		client.CheckRedirect = nil
	}
	resp, err := client.Do(req)
	if err != nil {
		writeOut(0, 0)
		host := target
		if u, err := url.Parse(target); err == nil {
			host = u.Host
		}
		switch httpFailure(ctx, err) {
		case "name not found":
			return complain(6, "Could not resolve host: %s", host)
		case "refused", "unreachable":
			return complain(7, "Failed to connect to %s: Couldn't connect to server", host)
		case "timeout":
			return complain(28, "Operation timed out")
		}
		return complain(52, "Empty reply from server")
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		writeOut(resp.StatusCode, len(data))
		if httpFailure(ctx, err) == "timeout" {
			return complain(28, "Operation timed out")
		}
		return complain(56, "Recv failure: Connection reset by peer")
	}
	if f.fail && resp.StatusCode >= 400 {
		writeOut(resp.StatusCode, 0)
		return complain(22, "The requested URL returned error: %d", resp.StatusCode)
	}
	var page bytes.Buffer
	if f.head || f.include {
		fmt.Fprintf(&page, "%s %s\r\n", resp.Proto, resp.Status)
		for _, k := range slices.Sorted(keysOf(resp.Header)) {
			fmt.Fprintf(&page, "%s: %s\r\n", k, resp.Header.Get(k))
		}
		page.WriteString("\r\n")
	}
	page.Write(data)
	if f.output == "" || f.output == "-" {
		_, _ = t.out.Write(page.Bytes())
	} else {
		file, err := t.b.open(t.Path(f.output), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err == nil {
			_, err = file.Write(page.Bytes())
		}
		if err != nil {
			return complain(23, "Failure writing output to destination: %s", errText(err))
		}
	}
	writeOut(resp.StatusCode, len(data))
	return 0
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
