package redact

import (
	"regexp"
	"strings"
)

// rule is one form of a secret. Its expression is tried only where one of its words
// stands, and begins there: that keeps the work small.
type rule struct {
	kind  string
	words []string
	fold  bool // the words are in lower case and the text is compared so
	re    *regexp.Regexp
	// before says whether the byte before the word lets it begin there; nil: any does.
	before func(byte) bool
	// run is set for secrets whose end may lie farther than reach. Where none begins,
	// none begins in the rest of a run of these bytes either.
	run func(byte) bool
	// cut is how long the beginning of one is that was cut for showing, without its
	// "…"; -1 where there is none. nil: beginnings are not looked for.
	cut func(s string) int
	// check has the last word, from the first reach bytes; nil: the form is enough.
	check func(secret string) bool
}

// form is a key that its own beginning tells.
func form(kind, expression, words string) rule {
	return rule{kind: kind, words: strings.Fields(words), re: regexp.MustCompile(`^(?:` + expression + `)`), before: apart, cut: cutForm}
}

// cutForm is written out: as an expression it was most of the work in hostile text.
func cutForm(s string) int {
	n := runOf(s[:min(len(s), 301)], func(c byte) bool { return !apart(c) || strings.IndexByte("$.:/+=-", c) >= 0 })
	if n < 4 || n > 300 || !strings.HasPrefix(s[n:], "…") {
		return -1
	}
	return n
}

// cutPlace is the beginning of a secret by an expression that ends with "…".
func cutPlace(expression string) func(string) int {
	re := regexp.MustCompile(expression)
	return func(s string) int {
		m := re.FindStringIndex(s)
		if m == nil {
			return -1
		}
		return m[1] - len("…")
	}
}

// place is where a secret stands, whatever it looks like: the first group.
func place(kind, expression string, check func(string) bool, words string) rule {
	return rule{kind: kind, words: strings.Fields(words), fold: true, re: regexp.MustCompile(`^(?i:` + expression + `)`), check: check}
}

func apart(c byte) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_')
}

func webSafe(c byte) bool { return !apart(c) || c == '-' }

func digit(c byte) bool { return c >= '0' && c <= '9' }

// rules are the forms, marked ones first.
var rules = []rule{
	{kind: "private-key", words: []string{"-----BEGIN "}, run: func(c byte) bool { return c == '-' },
		re: regexp.MustCompile(`^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[\s\S]*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,-]*)`)},
	form("age-key", `AGE-SECRET-KEY-1[0-9A-Z]{58}\b`, `AGE-SECRET-KEY-1`),
	form("aws-access-key", `(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`, `AKIA ASIA ABIA ACCA`),
	form("anthropic-key", `sk-ant-[A-Za-z0-9_-]{20,}`, `sk-ant-`),
	form("openrouter-key", `sk-or-v1-[0-9a-f]{32,}`, `sk-or-v1-`),
	{kind: "openai-key", words: []string{"sk-"}, before: apart, re: regexp.MustCompile(`^sk-[A-Za-z0-9_-]{20,}`), check: mixed, cut: cutForm},
	form("github-token", `gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}`, `ghp_ gho_ ghu_ ghs_ ghr_ github_pat_`),
	form("gitlab-token", `gl[a-z]{2,5}-[A-Za-z0-9_-]{20,}`, `glpat- glptt- glrt- gldt- glft- glsoat- glimt- glagent- glcbt- gloas-`),
	form("slack-token", `xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}`, `xoxa xoxb xoxe xoxo xoxp xoxr xoxs xapp-`),
	form("webhook", `https://(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/[A-Za-z0-9/_-]{20,}`,
		`https://hooks.slack.com https://discord.com/api https://discordapp.com/api`),
	form("stripe-key", `(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}`, `sk_live_ sk_test_ rk_live_ rk_test_ whsec_`),
	form("google-key", `AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28}`, `AIza ya29. GOCSPX-`),
	form("huggingface-token", `hf_[A-Za-z0-9]{30,}`, `hf_`),
	form("npm-token", `npm_[A-Za-z0-9]{36}\b`, `npm_`),
	form("pypi-token", `pypi-AgE[A-Za-z0-9_-]{50,}`, `pypi-AgE`),
	form("rubygems-token", `rubygems_[0-9a-f]{48}\b`, `rubygems_`),
	form("digitalocean-token", `do[opr]_v1_[0-9a-f]{64}\b`, `doo_v1_ dop_v1_ dor_v1_`),
	form("docker-token", `dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}`, `dckr_pat_ dckr_oat_`),
	form("vault-token", `hv[sbr]\.[A-Za-z0-9_-]{24,}`, `hvs. hvb. hvr.`),
	form("sendgrid-key", `SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}`, `SG.`),
	form("twilio-key", `SK[0-9a-f]{32}\b`, `SK`),
	{kind: "telegram-token", words: []string{":AA"}, before: digit, re: regexp.MustCompile(`^:(AA[A-Za-z0-9_-]{33})\b`)},
	form("shopify-token", `shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}\b`, `shpat_ shpca_ shppa_ shpss_`),
	form("databricks-token", `dapi[0-9a-f]{32}\b`, `dapi`),
	form("model-key", `[a-z0-9_]+[_-][A-Za-z0-9_-]{30,}`, `gsk_ r8_ pplx- xai- fw_ csk- nvapi- tgp_v1_ vck_`),
	form("service-token", `[A-Za-z_.]+[A-Za-z0-9_=.-]{30,}`,
		`lin_api_ glsa_ glc_ sntrys_ sntryu_ NRAK- tskey- pul- ATATT3 ATCTT3 dp.pt. PMAK- EZAK figd_ ntn_ sbp_ phc_ phx_`),
	{kind: "jwt", words: []string{"eyJ"}, before: apart, run: webSafe, re: regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)},
	form("password-hash", `\$(?:1|5|6|7|y|gy|2[abxy]|argon2id?|argon2i)\$[./A-Za-z0-9$=,+-]{20,}`, `$1$ $5$ $6$ $7$ $y$ $gy$ $2a$ $2b$ $2x$ $2y$ $argon2`),
	form("azure-key", `(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{42,}={0,2})`, `AccountKey= SharedAccessKey=`),

	place("aws-secret-key", `secret_?access_?key["'\\]*\s*[:=]\s*["'\\]*([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+]|$)`, nil, `secret_access_key secretaccesskey`),
	place("authorization", `authorization["'\\]*\s*[:=]\s*["'\\]*(?:(?:bearer|basic|token|bot|digest|apikey|negotiate)\s+)?([^\s"'\\,;\[\]<>]{6,})`, credential, `authorization`),
	place("bearer-token", `bearer\s+([A-Za-z0-9._~+/=-]{20,})`, mixed, `bearer`),
	place("header-key", `x-(?:api-key|auth-token|goog-api-key|amz-security-token|vault-token|access-token)["'\\]*\s*[:=]\s*["'\\]*([^\s"'\\,;\[\]<>]{6,})`, literal,
		`x-api-key x-auth-token x-goog-api-key x-amz-security-token x-vault-token x-access-token`),
	place("cookie", `cookie["'\\]*:\s*["'\\]*([A-Za-z0-9_.%-]+=[^\s"'\\\[\]][^\r\n"'\\\[\]]{7,})`, nil, `cookie`),
	place("url-password", `://[^\s:/@"'<>]{0,100}:([^\s/@"'<>\[\]]{3,200})@`, literal, `://`),
	place("curl-password", `curl\b[^\n|;&]{0,300}?\s(?:-u|--user)[ =]?["']?[^\s:"']{1,100}:([^\s"'\[\]]{3,})`, literal, `curl`),
	place("sshpass-password", `sshpass\s+-p\s*["']?([^\s"'\[\]]{3,})`, literal, `sshpass`),
	// A variable of the environment, as it is set: NAME=value, whatever the value.
	{kind: "password", words: strings.Fields(`PASSWORD= PASSWD= PASSPHRASE= SECRET= TOKEN= API_KEY= APIKEY= ACCESS_KEY= SECRET_KEY= PRIVATE_KEY= AUTH_KEY=`),
		re: regexp.MustCompile(`^[A-Z_]+=["']?([^\s"'\\$<>{}()\[\]*%|;&` + "`" + `]{6,})`), check: literal},
	place("password", `(?:password|passwd|passphrase|secret|token|(?:api|access|secret|private|auth)[_-]?key)["'\\]*\s*[:=]>?\s*["'\\]*([^\s"'\\$<>{}()\[\]*%|;&,`+"`"+`]{8,})`, convincing,
		`password passwd passphrase secret token api_key api-key apikey access_key access-key accesskey secret_key secret-key private_key private-key auth_key auth-key`),
}

func init() {
	cuts := map[string]string{
		"authorization": `^(?i:authorization["'\\]*\s*[:=]\s*["'\\]*(?:(?:bearer|basic|token|bot|digest|apikey|negotiate)\s+)?[^\s"'\\,;\[\]<>]*…)`,
		"url-password":  `^://[^\s:/@"'<>]{0,100}:[^\s/@"'<>\[\]]*[^\s/@"'<>\[\]0-9…][^\s/@"'<>\[\]…]*…`,
		"password":      `^(?i:[a-z_-]+["'\\]*[:=]["'\\]*[^\s"'\\$<>{}()\[\]*%|;&…]+…)`,
	}
	for i := range rules {
		if c, ok := cuts[rules[i].kind]; ok {
			rules[i].cut = cutPlace(c)
		}
	}
}

var secretName = regexp.MustCompile(`(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?key|authorization)$`)

// named is the kind of secret that a key of an object names; "" for none.
func named(key string) string {
	if secretName.MatchString(key) {
		return "password"
	}
	return ""
}

// literal tells a value from a variable, a placeholder and an example of a form.
func literal(s string) bool {
	return !strings.ContainsAny(s[:1], "$<{*%(") && !strings.Contains(s, "${") && strings.Trim(s, "xX*.…-") != ""
}

// credential is what stands behind Authorization, if it is not the scheme alone.
func credential(s string) bool {
	switch strings.ToLower(s) {
	case "bearer", "digest", "apikey", "negotiate":
		return false
	}
	return literal(s)
}

// mixed tells what looks like a key from words: letters and digits.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) && literal(s)
}

// convincing tells a secret from what is written behind such names otherwise:
// words, numbers, paths, members of objects, calls.
func convincing(s string) bool {
	if len(s) < 8 || !mixed(s) || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "./") || strings.Contains(s, "://") {
		return false
	}
	// Names in code: parts with dots or low lines between them, each of letters and
	// then digits.
	return !identifier.MatchString(s)
}

var identifier = regexp.MustCompile(`^(?:[A-Za-z]+[0-9]{0,2}[._-])+[A-Za-z]+[0-9]{0,2}$|^[A-Za-z]+[0-9]{0,2}$`)
