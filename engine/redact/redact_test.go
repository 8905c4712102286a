package redact

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"refbox/engine/internal/shared"
)

// planted are secrets of every kind in a sentence; the middle part must go. They
// are put together here so that no scanner takes this file for a leak.
func planted() []struct{ kind, before, secret, after string } {
	a := strings.Repeat("Ab3dEf6hIj9", 20)
	hex := strings.Repeat("0a1b2c3d4e5f6789", 8)
	return []struct{ kind, before, secret, after string }{
		{"aws-access-key", "id ", "AK" + "IAQ7BZXM3YPLNE2WRT", " ok"},
		{"aws-secret-key", "aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz3xAmQl0P", "\n"},
		{"anthropic-key", "export K=", "sk-" + "ant-api03-" + a[:60], "\n"},
		{"openai-key", "key: ", "sk-" + "proj-" + a[:48], " "},
		{"openrouter-key", "", "sk-" + "or-v1-" + hex[:64], ""},
		{"github-token", "git clone with ", "gh" + "p_" + a[:36], "."},
		{"github-token", "", "github" + "_pat_" + a[:60], ""},
		{"gitlab-token", "", "gl" + "pat-" + a[:20], ""},
		{"slack-token", "", "xo" + "xb-123456789012-" + a[:24], ""},
		{"webhook", "curl ", "https://hooks.slack." + "com/services/T00000000/B00000000/" + a[:24], " -d x"},
		{"stripe-key", "", "sk" + "_live_" + a[:24], ""},
		{"google-key", "?key=", "AI" + "za" + a[:35], "&x"},
		{"huggingface-token", "", "h" + "f_" + a[:34], ""},
		{"npm-token", "//registry/:_authToken=", "n" + "pm_" + a[:36], ""},
		{"pypi-token", "", "py" + "pi-AgEIcHlwaS5vcmc" + a[:60], ""},
		{"digitalocean-token", "", "do" + "p_v1_" + hex[:64], ""},
		{"docker-token", "", "dc" + "kr_pat_" + a[:27], ""},
		{"vault-token", "", "hv" + "s." + a[:30], ""},
		{"sendgrid-key", "", "S" + "G." + a[:22] + "." + a[:43], ""},
		{"twilio-key", "", "S" + "K" + hex[:32], ""},
		{"telegram-token", "bot123456789:", "AA" + a[:33], "/getMe"},
		{"databricks-token", "", "da" + "pi" + hex[:32], ""},
		{"model-key", "", "gs" + "k_" + a[:50], ""},
		{"service-token", "", "li" + "n_api_" + a[:40], ""},
		{"jwt", "token ", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + a[:40], " end"},
		{"password-hash", "root:", "$6$rounds=5000$" + a[:16] + "$" + a[:80], ":19000:"},
		{"azure-key", "AccountName=x;AccountKey=", a[:86] + "==", ";Endpoint"},
		{"private-key", "cat id\n", "-----BEGIN OPENSSH PRIVATE" + " KEY-----\n" + a[:64] + "\n" + a[:30] + "=\n-----END OPENSSH PRIVATE" + " KEY-----", "\n$"},
		{"rubygems-token", "", "ruby" + "gems_" + hex[:48], " pushed"},
		{"shopify-token", "X: ", "sh" + "pat_" + hex[:32], ""},
		{"age-key", "", "AGE-SECRET-" + "KEY-1" + strings.Repeat("Q3", 29), ""},
		{"authorization", `curl -H "Authorization: Basic `, "dXNlcjpwYXNz", `" http://x`},
		{"bearer-token", "sent Bearer ", a[:30], " to it"},
		{"header-key", "-H 'X-Api-Key: ", "s3cr3tvalue", "' http"},
		{"cookie", "< Set-Cookie: ", "session=abcdef0123456789; HttpOnly", "\r\n"},
		{"url-password", "psql postgres://app:", "hunter2", "@db:5432/x"},
		{"curl-password", "curl -s -u admin:", "opensesame1", " http://x"},
		{"sshpass-password", "sshpass -p ", "opensesame", " ssh root@x"},
		{"password", "PGPASSWORD=", "correcthorse", " psql"},
		{"password", `"api_key": "`, "q9w8e7r6t5y4", `"`},
		{"password", "db_password: ", "Tr0ub4dor&3"[:9], "\n"},
	}
}

func TestEveryKindIsTakenOut(t *testing.T) {
	for _, p := range planted() {
		r := &Redactor{}
		got := r.Text(p.before + p.secret + p.after)
		if want := p.before + "[redacted " + p.kind + "]" + p.after; got != want {
			t.Errorf("%s: %q, should be %q", p.kind, got, want)
		}
		if r.Count() != 1 || r.Kinds()[p.kind] != 1 {
			t.Errorf("%s: counted %v", p.kind, r.Kinds())
		}
		if again := r.Text(got); again != got {
			t.Errorf("%s: the mark itself is redacted: %q", p.kind, again)
		}
	}
}

// What was cut for showing has lost its form: its beginning goes as well.
func TestBeginningsAreTakenOut(t *testing.T) {
	for in, want := range map[string]string{
		"x gh" + "p_Ab3d… y":                 "x [redacted github-token]… y",
		"sk-" + "ant-api03-Ab…":              "[redacted anthropic-key]…",
		"postgres://app:hun…":                "postgres[redacted url-password]…",
		"curl http://127.0.0.1:8080…":        "curl http://127.0.0.1:8080…",
		"PGPASSWORD=cor…":                    "PG[redacted password]…",
		"Authorization: Bearer Ab…":          "[redacted authorization]…",
		"a sentence that is cut, a token…":   "a sentence that is cut, a token…",
		"/nix/store/3lf8if1z3ahcv9mdxqmw…":   "/nix/store/3lf8if1z3ahcv9mdxqmw…",
		"aecec3751d117a32e425a77be71ec1df1…": "aecec3751d117a32e425a77be71ec1df1…",
	} {
		if got := new(Redactor).Text(in); got != want {
			t.Errorf("%q became %q, should be %q", in, got, want)
		}
	}
}

// Each rule has an example above.
func TestEveryRuleHasAnExample(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range planted() {
		seen[p.kind] = true
	}
	for _, r := range rules {
		if !seen[r.kind] {
			t.Errorf("no example of %s", r.kind)
		}
		for _, w := range r.words {
			if r.fold && w != strings.ToLower(w) {
				t.Errorf("%s: %q would never be found", r.kind, w)
			}
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	for _, s := range []string{
		"3b18e512dba79e4c8300dd08aeb37f8e728b8dad", "aecec3751d117a32e425a77be71ec1df13e84fbae821882cc68287016ef1b22f",
		"550e8400-e29b-41d4-a716-446655440000", "toolu_01A09q90qw90lq917835lq9", "msg_01XFDUDYJgAACzvnptvVoYEL", "call_b2c8f47c302546d1a5db9e46",
		"chatcmpl-tool-24c95ef3210642c39dac8ce3a647ce42", "sha256:aecec3751d117a32e425a77be71ec1df13e84fbae821882cc68287016ef1b22f",
		"/nix/store/3lf8if1z3ahcv9mdxqmwncn87hnwdymi-failover-replica.py", "max_tokens=100000", "input_tokens: 12345678", "total_token_usage",
		"Authorization: Bearer $TOKEN", "curl -u $USER:$PASS http://x", "https://user:${PASSWORD}@host/", "password: <redacted>",
		"the token was refused; a password is needed", "api_key=os.environ['KEY']", "token = get_token(request1)", "secret_key = settings.secret_key2",
		"password = self.password1", "docker run -u 1000:1000 x", "http://127.0.0.1:8080/records/check", "disk-usage-of-the-whole-host-2024",
		"Proxy-Connection: keep-alive", "key: value", "monkey=banana123", "TOKEN=$(cat /run/token)", "sk-learn", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
	} {
		r := &Redactor{}
		if got := r.Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// The samples and recordings hold hashes, ids and UUIDs, which stay; what is
// found in them is listed, and is little. The race detector and a short run look
// at the beginnings of the files: it is the same code.
func TestSamplesAreNotMangled(t *testing.T) {
	ids := regexp.MustCompile(`\b(?:[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|toolu_\w+|call_\w+|msg_\w+)\b`)
	total, found := 0, 0
	for _, dir := range []string{"transcripts", "recordings", "seeds"} {
		err := filepath.WalkDir(shared.Shared(t, dir), func(file string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(file, ".eval") {
				return err
			}
			b, err := os.ReadFile(file)
			if raced || testing.Short() {
				b = b[:min(len(b), 8<<10)]
				for len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) {
					b = b[:len(b)-1] // a rune that was cut
				}
			}
			if err != nil || !utf8.Valid(b) {
				return err
			}
			r := &Redactor{}
			before, after := ids.FindAllString(string(b), -1), ids.FindAllString(r.Text(string(b)), -1)
			total += len(before)
			found += r.Count()
			if len(before) != len(after) {
				t.Errorf("%s: of %d hashes and ids %d are left; %s", file, len(before), len(after), r)
			}
			if r.Count() > 0 {
				for _, f := range find(string(b)) {
					t.Logf("%s: %s %.60q", filepath.Base(file), f.kind, b[f.start:f.end])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d hashes and ids stay, %d secrets", total, found)
	enough := 1000
	if raced || testing.Short() {
		enough = 100
	}
	if total < enough {
		t.Errorf("only %d hashes and ids were looked at", total)
	}
}

// Work is linear in any text. Where it is not, 128 KiB of these take minutes.
func TestHostileTextIsLinear(t *testing.T) {
	for _, unit := range []string{"-eyJ", "-eyJaaaaaaaaaa.", "eyJaaaaaaaaaa.eyJ-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----.",
		"token=", "password: ", "PASSWORD=", "-sk-", "authorization:a", "bearer ", "cookie:a", "curl -u a", "://a:a", "hv" + "s.", "x-api-key:a", "$6$"} {
		size := 128 << 10
		if raced {
			size = 4 << 10
		}
		s := strings.Repeat(unit, size/len(unit))
		done := make(chan struct{})
		go func() {
			defer close(done)
			new(Redactor).Text(s)
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatalf("%d bytes of %q take more than 30 s", len(s), unit)
		}
	}
}

// A key that is longer than what is looked at first goes as a whole.
func TestLongSecretsGoWhole(t *testing.T) {
	long := strings.Repeat("Ab3dEf6hIj", 2000)
	for kind, p := range map[string][2]string{
		"jwt":         {"token ", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0" + long + "." + long},
		"private-key": {"", "-----BEGIN RSA PRIVATE" + " KEY-----\n" + long + "\n-----END RSA PRIVATE" + " KEY-----"},
		"password":    {"API_TOKEN=", long},
	} {
		if got, want := new(Redactor).Text(p[0]+p[1]+" end"), p[0]+"[redacted "+kind+"] end"; got != want {
			t.Errorf("%s: %d bytes are left: %.200q", kind, len(got), got)
		}
	}
	// A run that holds no key does not hide the one behind it.
	behind := strings.Repeat("-eyJ", 100) + " " + "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + long[:40]
	if got := new(Redactor).Text(behind); !strings.HasSuffix(got, "-eyJ [redacted jwt]") {
		t.Errorf("%.600q", got)
	}
}

// A stream in pieces: however it is cut, the secret goes and the rest stays.
func TestChunks(t *testing.T) {
	list := planted()
	rapid.Check(t, func(t *rapid.T) {
		p := list[rapid.IntRange(0, len(list)-1).Draw(t, "kind")]
		whole := "first line\n" + p.before + p.secret + p.after + "\nlast line"
		var chunks []string
		for rest := whole; rest != ""; {
			n := min(rapid.IntRange(1, 40).Draw(t, "n"), len(rest))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		r := &Redactor{}
		out := r.Chunks(chunks)
		if len(out) != len(chunks) {
			t.Fatalf("%d pieces became %d", len(chunks), len(out))
		}
		if got, want := strings.Join(out, ""), new(Redactor).Text(whole); got != want {
			t.Fatalf("%q, should be %q", got, want)
		}
	})
}

func TestValue(t *testing.T) {
	r := &Redactor{}
	in := map[string]any{"password": "q9w8e7r6t5", "n": 3.0, "list": []any{"PGPASSWORD=correcthorse psql", nil}, "max_tokens": "12345678"}
	got := r.Value(in).(map[string]any)
	if got["password"] != "[redacted password]" || got["list"].([]any)[0] != "PGPASSWORD=[redacted password] psql" || got["n"] != 3.0 || got["max_tokens"] != "12345678" {
		t.Errorf("%v", got)
	}
	if in["password"] != "q9w8e7r6t5" {
		t.Error("the value itself was changed")
	}
	if r.String() != "2 secrets redacted: 2 password" || (*Redactor)(nil).Text("x") != "x" {
		t.Errorf("%s", r)
	}
}

// Any text: it ends, marks nothing in what it has marked, and keeps lines apart.
func FuzzText(f *testing.F) {
	for _, p := range planted() {
		f.Add(p.before + p.secret + p.after)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := &Redactor{}
		out := r.Text(s)
		if r.Count() == 0 && out != s {
			t.Errorf("%q became %q and nothing was counted", s, out)
		}
	})
}

func BenchmarkText(b *testing.B) {
	s := strings.Repeat("2026-01-02 10:00:00 unit failover-proxy.service: token of the request was 12 and key=value, status 200\n", 1000)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		new(Redactor).Text(s)
	}
}
