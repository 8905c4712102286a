package text

import (
	"os/exec"
	"testing"
)

// A printed word is the word again for the shell that reads it.
func TestShellReadsWhatIsPrinted(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	for word, want := range map[string]string{
		"":                   "",
		"plain/heat-1":       "plain/heat-1",
		"with spaces":        "with spaces",
		"it's \"here\"":      "it's \"here\"",
		"a;touch b&&$(c)`d`": "a;touch b&&$(c)`d`",
		"~ann":               "~ann",
		"*?[a]{b,c}":         "*?[a]{b,c}",
		"-v":                 "./-v",
		"größer/日本 é":        "größer/日本 é",
		"tab\there\x1b[31m":  Line("tab\there\x1b[31m"),
	} {
		out, err := exec.Command(sh, "-c", "printf %s "+Shell(word)).Output()
		if err != nil || string(out) != want {
			t.Errorf("%q is printed as %s, which a shell reads as %q, want %q (%v)", word, Shell(word), out, want, err)
		}
	}
	if got := Shell("plain/heat-1.tar.gz"); got != "plain/heat-1.tar.gz" {
		t.Errorf("%s is quoted without need", got)
	}
}
