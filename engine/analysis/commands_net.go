package analysis

import (
	"path"
	"strings"
)

// Options of curl that take a value; the rest take none.
const curlValued = "AbcCdDeEFhHKmoPQrtTuUwxXyYzZ"

var curlLong = strings.Fields(`abstract-unix-socket cacert capath cert cert-type ciphers config connect-timeout connect-to continue-at
	cookie cookie-jar data data-ascii data-binary data-raw data-urlencode dump-header expect100-timeout form form-string header
	interface json key limit-rate local-port max-filesize max-redirs max-time noproxy oauth2-bearer output output-dir pass proto
	proxy proxy-user proxy-header pubkey range referer request request-target resolve retry retry-delay retry-max-time socks5
	speed-limit speed-time stderr tls-max trace trace-ascii unix-socket upload-file url user user-agent write-out happy-eyeballs-timeout-ms`)

func curl(c *call) {
	ops, opts := getopt(c.args, curlValued, curlLong...)
	method := strings.ToUpper(first(opts, "X", "request").text)
	body := false
	for _, k := range []string{"d", "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "F", "form", "form-string", "T", "upload-file", "json"} {
		if _, ok := opts[k]; ok {
			body = true
		}
	}
	_, get := opts["G"]
	if _, long := opts["get"]; long {
		get = true
	}
	if u, ok := opts["url"]; ok {
		ops = append(ops, u)
	}
	socket := first(opts, "unix-socket", "abstract-unix-socket").text
	for _, u := range ops {
		c.request(method, body && !get, socket, u.text)
	}
	if len(ops) == 0 {
		c.request(method, body && !get, socket, unknown)
	}
	if out := first(opts, "o", "output"); out.text != "" {
		c.file(FileWritten, out)
	} else if _, remote := opts["O"]; remote && len(ops) > 0 {
		c.add(FileWritten, c.resolve(path.Base(ops[0].text)))
	}
	for _, k := range []string{"c", "cookie-jar", "D", "dump-header"} {
		if f, ok := opts[k]; ok {
			c.file(FileWritten, f)
		}
	}
}

func first(opts map[string]arg, keys ...string) arg {
	for _, k := range keys {
		if a, ok := opts[k]; ok {
			return a
		}
	}
	return arg{}
}

// request notes an HTTP request. Writing through a service's own port is how its
// contract is tried, so it is a check; writing to a daemon's control socket
// tells the daemon to do something.
func (c *call) request(method string, body bool, socket, url string) {
	writes := body
	switch method {
	case "":
	case "GET", "HEAD", "OPTIONS", "TRACE":
		writes = false
	default:
		writes = true
	}
	switch {
	case writes && socket != "":
		c.add(ServiceCommand, socket)
	case writes:
		c.add(HTTPWrite, url)
	default:
		c.add(HTTPRequest, url)
	}
}

func wget(c *call) {
	ops, opts := getopt(c.args, "oOaeiBtTwQPUlARDIX", "output-document", "output-file", "post-data", "post-file", "method", "header",
		"timeout", "tries", "directory-prefix", "user", "password", "body-data", "user-agent")
	_, post := opts["post-data"]
	_, file := opts["post-file"]
	for _, u := range ops {
		c.request(strings.ToUpper(opts["method"].text), post || file, "", u.text)
	}
	if _, spider := opts["spider"]; spider || len(ops) == 0 {
		return
	}
	if out := first(opts, "O", "output-document"); out.text != "" {
		c.file(FileWritten, out)
	} else {
		c.add(FileWritten, join(c.resolve(first(opts, "P", "directory-prefix").text), path.Base(ops[0].text)))
	}
}

func httpie(c *call) {
	ops, _ := getopt(c.args, "apo", "auth", "print", "output", "timeout")
	method, url := "", unknown
	for _, a := range ops {
		switch t := a.text; {
		case t == strings.ToUpper(t) && strings.Trim(t, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "":
			method = t
		default:
			if url == unknown {
				url = t
			}
		}
	}
	c.request(method, false, "", url)
}

func portProbe(c *call) {
	ops, opts := getopt(c.args, "wpsXxiIqTeGO")
	if _, listen := opts["l"]; listen {
		c.started(ProgramRun, c.word)
		return
	}
	var where []string
	for _, a := range ops {
		where = append(where, a.text)
	}
	c.add(PortProbed, strings.Join(where, ":"))
}
