package ipmi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // cipher suite 3 is made of it
	"crypto/sha256"
	"hash"
	"slices"
)

// suite is a cipher suite: what authenticates, what protects integrity, and what encrypts.
type suite struct {
	id                                         byte
	authentication, integrity, confidentiality byte // the numbers of the algorithms
	hash                                       func() hash.Hash
	codeLength                                 int // of the authentication codes of RAKP 4 and of messages
}

// suites are those that a BMC may have: HMAC-SHA1 and HMAC-SHA256, both with AES-CBC-128.
var suites = []suite{
	{id: 3, authentication: 1, integrity: 1, confidentiality: 1, hash: sha1.New, codeLength: 12},
	{id: 17, authentication: 3, integrity: 4, confidentiality: 1, hash: sha256.New, codeLength: 16},
}

// record is the suite in the answer to Get Channel Cipher Suites.
func (s suite) record() []byte {
	const standard, integrity, confidentiality = 0xc0, 0x40, 0x80
	return []byte{standard, s.id, s.authentication, integrity | s.integrity, confidentiality | s.confidentiality}
}

// mac returns the full HMAC of parts.
func (s suite) mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(s.hash, key)
	for _, part := range parts {
		_, _ = h.Write(part) // never fails
	}
	return h.Sum(nil)
}

// keys are the keys of a session.
type keys struct {
	suite      suite
	integrity  []byte // K1
	encryption []byte // K2
}

// derive makes the keys from the session integrity key.
func (s suite) derive(sik []byte) keys {
	constant := func(b byte) []byte { return slices.Repeat([]byte{b}, 20) }
	return keys{suite: s, integrity: s.mac(sik, constant(1)), encryption: s.mac(sik, constant(2))[:aes.BlockSize]}
}

// sign returns the authentication code of a message.
func (k keys) sign(b []byte) []byte { return k.suite.mac(k.integrity, b)[:k.suite.codeLength] }

// verify reports whether an authentication code is right.
func (k keys) verify(b, code []byte) bool { return hmac.Equal(k.sign(b), code) }

// encrypt encrypts a payload: the initialization vector, then the payload with padding 1, 2, 3, ... and its length.
func (k keys) encrypt(iv, payload []byte) []byte {
	padding := -(len(payload) + 1) & (aes.BlockSize - 1)
	plain := slices.Clone(payload)
	for i := range padding {
		plain = append(plain, byte(i+1))
	}
	plain = append(plain, byte(padding))
	cipher.NewCBCEncrypter(k.block(), iv).CryptBlocks(plain, plain)
	return append(slices.Clone(iv), plain...)
}

// decrypt is the reverse of encrypt.
func (k keys) decrypt(b []byte) ([]byte, error) {
	if len(b) < 2*aes.BlockSize || len(b)%aes.BlockSize != 0 {
		return nil, errMalformed
	}
	plain := slices.Clone(b[aes.BlockSize:])
	cipher.NewCBCDecrypter(k.block(), b[:aes.BlockSize]).CryptBlocks(plain, plain)
	end := len(plain) - 1 - int(plain[len(plain)-1])
	if end < 0 {
		return nil, errMalformed
	}
	return plain[:end], nil
}

func (k keys) block() cipher.Block {
	block, err := aes.NewCipher(k.encryption)
	if err != nil {
		panic(err) // the key has the right length
	}
	return block
}
