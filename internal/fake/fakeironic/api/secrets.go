package api

import (
	"regexp"
	"strings"
)

// Stars replace a secret.
const Stars = "******"

// secretWords mark secrets: Ironic masks the value of a key that contains one of them.
var secretWords = []string{
	"adminpass", "admin_pass", "password", "admin_password", "auth_token", "new_pass", "auth_password", "secret_uuid", "secret",
	"sys_pswd", "token", "configdrive", "encrypted_key", "private_key", "fernetkey", "sslkey", "passphrase", "chapsecret",
}

// secretTexts match secrets in texts, such as that of a URL with ?token=SECRET (reference/ironic.md#masked-secrets; not those in
// JSON, XML and Python, as oslo_utils/strutils.py has them).
var secretTexts = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:` + strings.Join(secretWords, "|") + `)[0-9]*\s*=\s*["'])[^"']*(["'])`),
	regexp.MustCompile(`(?i)(--(?:` + strings.Join(secretWords, "|") + `)[0-9]*\s+)[^'"^=\s]+()`),
	regexp.MustCompile(`(?i)((?:` + strings.Join(secretWords, "|") + `)[0-9]*\s*--?[A-z]+\s*)\S+()`),
	regexp.MustCompile(`(?i)((?:` + strings.Join(secretWords, "|") + `)[0-9]*\s*=\s*)[^\s^'"]+()`),
}

// maskTexts masks the secrets in a text.
func maskTexts(value any) any {
	text, is := value.(string)
	if !is {
		return value
	}
	for _, secret := range secretTexts {
		text = secret.ReplaceAllString(text, "${1}"+Stars+"${2}")
	}
	return text
}

// Mask returns a copy with masked secrets at any depth of objects. 21.4 does not mask inside lists.
func Mask(info map[string]any, legacy bool) map[string]any {
	out := make(map[string]any, len(info))
	for key, value := range info {
		nested, isDict := value.(map[string]any)
		switch {
		case isDict:
			out[key] = Mask(nested, legacy)
		case secretKey(key):
			out[key] = Stars
		default:
			out[key] = maskTexts(maskList(value, legacy))
		}
	}
	return out
}

func maskList(value any, legacy bool) any {
	list, isList := value.([]any)
	if !isList || legacy {
		return value
	}
	out := make([]any, len(list))
	for i, item := range list {
		out[i] = maskTexts(maskList(item, legacy))
		if dict, isDict := item.(map[string]any); isDict {
			out[i] = Mask(dict, legacy)
		}
	}
	return out
}

func secretKey(key string) bool {
	key = strings.ToLower(key)
	for _, word := range secretWords {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// MaskInstanceInfo masks the secrets, the config drive and the URL of the image.
func MaskInstanceInfo(info map[string]any, legacy bool) map[string]any {
	out := Mask(info, legacy)
	for _, key := range []string{"configdrive", "image_url"} {
		switch value := out[key].(type) {
		case nil:
		case string:
			if value != "" {
				out[key] = Stars
			}
		case map[string]any:
			if len(value) > 0 {
				out[key] = Stars
			}
		}
	}
	return out
}
