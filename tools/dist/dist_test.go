package dist_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

const project = "terraform-provider-metal"

// release is the files of a release.
type release struct{ dir, version string }

// find returns the release in METAL_DIST. It skips the test without one.
func find(t *testing.T) release {
	t.Helper()
	dir := os.Getenv("METAL_DIST")
	if dir == "" {
		t.Skip("make release-check makes a release, and tests it")
	}
	sums := glob(t, dir, project+"_*_SHA256SUMS")
	if len(sums) != 1 {
		t.Fatalf("the release has checksums in %q, want one file", sums)
	}
	return release{dir, strings.TrimSuffix(strings.TrimPrefix(sums[0], project+"_"), "_SHA256SUMS")}
}

// glob returns the names of files in a directory.
func glob(t *testing.T, dir, pattern string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// read returns a file whose name begins with that of the project and the version.
func (r release) read(t *testing.T, end string) []byte {
	t.Helper()
	return read(t, r.dir, project+"_"+r.version+"_"+end)
}

// platforms are those that METAL_PLATFORMS names, or all of .goreleaser.yml.
func platforms(t *testing.T) (all []string) {
	t.Helper()
	if named := os.Getenv("METAL_PLATFORMS"); named != "all" {
		return strings.Fields(named)
	}
	text := string(read(t, "../../.goreleaser.yml"))
	list := func(key string) []string {
		found := regexp.MustCompile(key + `: \[([a-z0-9, ]+)\]`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf(".goreleaser.yml has no %s", key)
		}
		return strings.Split(found[1], ", ")
	}
	for _, system := range list("goos") {
		for _, processor := range list("goarch") {
			all = append(all, system+"_"+processor)
		}
	}
	return all
}

// A registry takes the platforms from the names of the zips, and the version from the tag.
func TestDist_namesTheZipsAsTheRegistriesDemand(t *testing.T) {
	t.Parallel()
	r := find(t)
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(r.version) {
		t.Errorf("the version is %q", r.version)
	}
	for _, name := range []string{project, "metal"} {
		var want []string
		for _, platform := range platforms(t) {
			want = append(want, name+"_"+r.version+"_"+platform+".zip")
		}
		if got := glob(t, r.dir, name+"_*.zip"); !slices.Equal(got, want) {
			t.Errorf("the zips are %q, want %q", got, want)
		}
	}
}

// A CLI runs terraform-provider-NAME_vVERSION at the root of the zip, and only there has the version a v.
func TestDist_packsTheProviderAsAProgram(t *testing.T) {
	t.Parallel()
	r := find(t)
	for _, platform := range platforms(t) {
		for program, archive := range map[string]string{project + "_v" + r.version: project, "metal": "metal"} {
			if strings.HasPrefix(platform, "windows_") {
				program += ".exe"
			}
			archive += "_" + r.version + "_" + platform
			info := r.buildInfo(t, archive, program)
			settings := map[string]string{}
			for _, s := range info.Settings {
				settings[s.Key] = s.Value
			}
			if built := settings["GOOS"] + "_" + settings["GOARCH"]; built != platform || settings["CGO_ENABLED"] != "0" ||
				settings["-trimpath"] != "true" {
				t.Errorf("%s: the program was built with %v", archive, settings)
			}
		}
	}
}

// unzip returns the files of a zip.
func (r release) unzip(t *testing.T, archive string) map[string]*zip.File {
	t.Helper()
	opened, err := zip.OpenReader(filepath.Join(r.dir, archive+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	files := map[string]*zip.File{}
	for _, f := range opened.File {
		files[f.Name] = f
	}
	return files
}

func content(t *testing.T, f *zip.File) []byte {
	t.Helper()
	opened, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	all, err := io.ReadAll(opened)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// buildInfo is what Go has written into a program of a zip.
func (r release) buildInfo(t *testing.T, archive, program string) *debug.BuildInfo {
	t.Helper()
	f := r.unzip(t, archive)[program]
	if f == nil {
		t.Fatalf("%s has no %s", archive, program)
	}
	if mode := f.Mode().Perm(); mode != 0o755 {
		t.Errorf("%s: the mode of %s is %o", archive, program, mode)
	}
	info, err := buildinfo.Read(bytes.NewReader(content(t, f)))
	if err != nil {
		t.Fatalf("%s: %v", archive, err)
	}
	return info
}

func TestDist_saysWhichProtocolTheProviderHas(t *testing.T) {
	t.Parallel()
	var manifest struct {
		Version  int
		Metadata struct {
			Protocols []string `json:"protocol_versions"`
		}
	}
	if err := json.Unmarshal(find(t).read(t, "manifest.json"), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Version != 1 || !slices.Equal(manifest.Metadata.Protocols, []string{"6.0"}) {
		t.Errorf("the manifest is %+v", manifest)
	}
}

func TestDist_checksumsCoverAllFiles(t *testing.T) {
	t.Parallel()
	r := find(t)
	sums := map[string]string{}
	for line := range strings.Lines(string(r.read(t, "SHA256SUMS"))) {
		found := regexp.MustCompile(`^([0-9a-f]{64})  ([\w.~-]+)\n$`).FindStringSubmatch(line)
		if found == nil {
			t.Fatalf("a registry does not read the line %q", line)
		}
		sums[found[2]] = found[1]
	}
	want := []string{project + "_" + r.version + "_manifest.json", project + "_" + r.version + "_key.asc", "mirror.sh"}
	for _, pattern := range []string{"*.zip", "*.deb", "*.rpm", "*.cdx.json"} {
		want = append(want, glob(t, r.dir, pattern)...)
	}
	for _, name := range want {
		if sum := sha256.Sum256(read(t, r.dir, name)); sums[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("the checksum of %s is %q", name, sums[name])
		}
		delete(sums, name)
	}
	if len(sums) > 0 {
		t.Errorf("there are checksums of what is no file of a release: %v", sums)
	}
}

// Both CLIs check a binary signature with this library, and the registries take RSA keys.
func TestDist_isSignedAsTheRegistriesDemand(t *testing.T) {
	t.Parallel()
	r := find(t)
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(r.read(t, "key.asc")))
	if err != nil || len(keys) != 1 {
		t.Fatalf("the release has %d keys: %v", len(keys), err)
	}
	if key := keys[0].PrimaryKey; key.PubKeyAlgo != packet.PubKeyAlgoRSA || keys[0].PrivateKey != nil {
		t.Errorf("the key is of the algorithm %v, private: %t", key.PubKeyAlgo, keys[0].PrivateKey != nil)
	}
	sums, signature := bytes.NewReader(r.read(t, "SHA256SUMS")), bytes.NewReader(r.read(t, "SHA256SUMS.sig"))
	if _, err := openpgp.CheckDetachedSignature(keys, sums, signature, nil); err != nil {
		t.Errorf("the signature is wrong, or not binary: %v", err)
	}
}

// The list of components and the licences name the modules that are really linked.
func TestDist_namesAllThatIsLinked(t *testing.T) {
	t.Parallel()
	r := find(t)
	for _, platform := range platforms(t) {
		for program, archive := range map[string]string{project + "_v" + r.version: project, "metal": "metal"} {
			if strings.HasPrefix(platform, "windows_") {
				program += ".exe"
			}
			archive += "_" + r.version + "_" + platform
			var document struct {
				Components []struct{ Name, Version string }
			}
			if err := json.Unmarshal(read(t, r.dir, archive+".cdx.json"), &document); err != nil {
				t.Fatal(err)
			}
			var listed, linked []string
			for _, c := range document.Components {
				listed = append(listed, c.Name+" "+c.Version)
			}
			licences := string(content(t, r.unzip(t, archive)["third-party.txt"]))
			info := r.buildInfo(t, archive, program)
			for _, module := range info.Deps {
				linked = append(linked, module.Path+" "+module.Version)
			}
			for _, name := range append([]string{"Go " + info.GoVersion}, linked...) {
				if !strings.Contains(licences, "\n"+name+"\n") {
					t.Errorf("%s: third-party.txt lacks %s", archive, name)
				}
			}
			listed = slices.DeleteFunc(listed, func(name string) bool { return strings.HasPrefix(name, "std ") })
			slices.Sort(listed)
			slices.Sort(linked)
			if len(linked) == 0 || !slices.Equal(listed, linked) {
				t.Errorf("%s: the list of components has\n%q\nand linked are\n%q", archive, listed, linked)
			}
		}
	}
}
