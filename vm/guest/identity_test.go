package guest

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/GehirnInc/crypt/sha512_crypt"
	"golang.org/x/crypto/ssh"
)

func TestIdentitiesDiffer(t *testing.T) {
	a, akey, err := NewIdentity("one", "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	b, bkey, err := NewIdentity("one", "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(akey.Marshal()) == string(bkey.Marshal()) || a.HostKey == b.HostKey || a.MachineID == b.MachineID ||
		string(a.Entropy) == string(b.Entropy) || a.PasswordHash == b.PasswordHash {
		t.Error("two identities share something")
	}
	signer, err := ssh.ParsePrivateKey([]byte(a.HostKey))
	if err != nil || string(signer.PublicKey().Marshal()) != string(akey.Marshal()) {
		t.Errorf("the host key's halves do not match: %v", err)
	}
	if !strings.HasPrefix(a.HostKeyPublic, "ssh-ed25519 ") {
		t.Errorf("public half: %q", a.HostKeyPublic)
	}
	if raw, err := hex.DecodeString(a.MachineID); err != nil || len(raw) != 16 {
		t.Errorf("machine id %q", a.MachineID)
	}
}

func TestPasswordHash(t *testing.T) {
	_, _, err := NewIdentity("one", "correct horse", nil)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := hashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if err := sha512_crypt.New().Verify(hash, []byte("correct horse")); err != nil {
		t.Error(err)
	}
	if err := sha512_crypt.New().Verify(hash, []byte("other")); err == nil {
		t.Error("another password fits")
	}
	if strings.ContainsAny(hash, ":\n") {
		t.Errorf("%q does not fit into /etc/shadow", hash)
	}
}
