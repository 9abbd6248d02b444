package dist_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakehttp"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
)

// further is a platform whose zip is a small one here: nobody runs it.
const further = "windows_arm64"

// mirrors are what mirror.sh has made of a release.
type mirrors struct {
	release

	packed, unpacked, layout string
	bin                      string // where terraform and tofu are
}

// lay lets mirror.sh make mirrors of a release for this platform and another one.
func lay(t *testing.T) mirrors {
	t.Helper()
	r := find(t)
	own := runtime.GOOS + "_" + runtime.GOARCH
	files := t.TempDir()
	write(t, filepath.Join(files, project+"_"+r.version+"_"+own+".zip"), r.read(t, own+".zip"))
	write(t, filepath.Join(files, project+"_"+r.version+"_"+further+".zip"), zipOf(t, project+"_v"+r.version+".exe"))
	sign(t, files, r.version)
	to := t.TempDir()
	output, err := mirror(t, fingerprint(t), files, to)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return mirrors{r, to + "/packed", to + "/unpacked", to + "/oci/" + r.version, os.Getenv("METAL_CLIS")}
}

// zipOf returns a zip with a file that is its name.
func zipOf(t *testing.T, name string) []byte {
	t.Helper()
	var made bytes.Buffer
	archive := zip.NewWriter(&made)
	file, err := archive.Create(name)
	if err == nil {
		_, err = file.Write([]byte(name))
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return made.Bytes()
}

// mirror runs the script of a release, which needs nothing else of it but the files.
func mirror(t *testing.T, arguments ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", append([]string{os.Getenv("METAL_DIST") + "/mirror.sh"}, arguments...)...)
	command.Dir = t.TempDir()
	out, err := command.CombinedOutput()
	return string(out), err
}

// sign writes the checksums of the zips of a directory, and their signature by the key of GNUPGHOME.
func sign(t *testing.T, dir, version string) {
	t.Helper()
	sums := project + "_" + version + "_SHA256SUMS"
	shell(t, dir, "sha256sum *.zip > "+sums+" && gpg --batch --yes --detach-sign "+sums)
}

// fingerprint is that of the key that signs.
func fingerprint(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(shell(t, ".", "gpg --batch --with-colons --list-keys 2> /dev/null | awk -F: '/^fpr/ { print $10; exit }'"))
}

func shell(t *testing.T, dir, script string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euc", script)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, output)
	}
	return string(output)
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// machine is an empty machine: it has a CLI, and reaches nothing but this machine.
type machine struct {
	dir string
	env []string
	cli string
}

// empty returns an empty machine whose CLI takes providers from one method of installation only, and a configuration for a fake.
func (m mirrors) empty(t *testing.T, cli, method, authority string) machine {
	t.Helper()
	if _, err := os.Stat(filepath.Join(m.bin, cli)); err != nil {
		t.Skipf("there is no %s here", cli)
	}
	home, dir := t.TempDir(), t.TempDir()
	write(t, home+"/cli.rc", []byte("provider_installation {\n"+method+"\n}\n"))
	ironic := httptest.NewServer(&fakeironic.Server{})
	t.Cleanup(ironic.Close)
	write(t, dir+"/main.tf", fmt.Appendf(nil, `
terraform {
  required_providers {
    metal = { source = "terraform-provider-metal/metal" }
  }
}

provider "metal" { endpoint = %q }

resource "metal_host" "a" {
  name         = "a"
  driver       = "fake-hardware"
  target_state = "manageable"
}
`, ironic.URL))
	env := []string{
		"HOME=" + home, "PATH=/usr/bin:/bin", "TF_CLI_CONFIG_FILE=" + home + "/cli.rc", "CHECKPOINT_DISABLE=1", "TF_CLI_ARGS=-no-color",
		"HTTPS_PROXY=http://192.0.2.1:9", "HTTP_PROXY=http://192.0.2.1:9", // no CLI asks a proxy for this machine
	}
	if authority != "" {
		env = append(env, "SSL_CERT_FILE="+authority)
	}
	return machine{dir, env, filepath.Join(m.bin, cli)}
}

func (m machine) run(t *testing.T, arguments ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, m.cli, arguments...)
	command.Dir, command.Env = m.dir, m.env
	out, err := command.CombinedOutput()
	return string(out), err
}

func (m machine) must(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := m.run(t, arguments...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", m.cli, arguments, err, output)
	}
	return output
}

// installsAndPlans proves that a machine installs the provider and runs it, and that what the lock file then has is enough for that on this
// platform.
func (m machine) installsAndPlans(t *testing.T) {
	t.Helper()
	m.must(t, "init", "-input=false")
	if plan := m.must(t, "plan", "-input=false"); !strings.Contains(plan, "1 to add, 0 to change, 0 to destroy") {
		t.Errorf("the plan is\n%s", plan)
	}
	if err := os.RemoveAll(m.dir + "/.terraform"); err != nil {
		t.Fatal(err)
	}
	m.must(t, "init", "-input=false", "-lockfile=readonly")
}

// locks proves what a user does for the other platforms of a team.
func (m machine) locks(t *testing.T, from string) {
	t.Helper()
	hashes := func() int { return strings.Count(string(read(t, m.dir, ".terraform.lock.hcl")), `"h1:`) }
	if n := hashes(); n != 1 {
		t.Errorf("init has locked %d platforms, so the page is wrong", n)
	}
	m.must(t, "providers", "lock", from, "-platform="+runtime.GOOS+"_"+runtime.GOARCH, "-platform="+further)
	if n := hashes(); n != 2 {
		t.Errorf("the lock file has %d platforms", n)
	}
	m.must(t, "init", "-input=false", "-lockfile=readonly")
}

// The mirrors are large, so one test tries all, one after the other.
func TestMirror_installs(t *testing.T) {
	t.Parallel()
	m := lay(t)
	t.Run("directories", m.directories)
	t.Run("web server", m.webServer)
	t.Run("registry of images", m.registryOfImages)
}

func (m mirrors) directories(t *testing.T) {
	for _, cli := range []string{"terraform", "tofu"} {
		for name, dir := range map[string]string{"packed": m.packed, "unpacked": m.unpacked} {
			t.Run(cli+" "+name, func(t *testing.T) {
				at := m.empty(t, cli, fmt.Sprintf("filesystem_mirror { path = %q }", dir), "")
				at.installsAndPlans(t)
				at.locks(t, "-fs-mirror="+dir)
			})
		}
	}
}

// serveTLS serves something at an address of this machine. It returns the address, and the file of the CA of its certificate.
func serveTLS(t *testing.T, handler http.Handler) (address, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	authority = filepath.Join(t.TempDir(), "ca.pem")
	write(t, authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return server.Listener.Addr().String(), authority
}

// Any web server for files will do.
func (m mirrors) webServer(t *testing.T) {
	address, authority := serveTLS(t, http.FileServer(http.Dir(m.packed)))
	for _, cli := range []string{"terraform", "tofu"} {
		t.Run(cli, func(t *testing.T) {
			at := m.empty(t, cli, fmt.Sprintf("network_mirror { url = %q }", "https://"+address+"/"), authority)
			at.installsAndPlans(t)
			at.locks(t, "-net-mirror=https://"+address+"/")
		})
	}
}

// The registry is Debian's, and oras.Copy is what the command "oras cp" does.
func (m mirrors) registryOfImages(t *testing.T) {
	address, authority, client := startRegistry(t)
	layout, err := oci.New(m.layout)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := remote.NewRepository(address + "/terraform-provider-metal/metal")
	if err != nil {
		t.Fatal(err)
	}
	repository.Client = client
	if _, err := oras.Copy(t.Context(), layout, m.version, repository, m.version, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
	method := fmt.Sprintf("oci_mirror {\n  repository_template = \"%s/${namespace}/${type}\"\n"+
		"  include = [\"registry.opentofu.org/*/*\"]\n}", address)
	m.empty(t, "tofu", method, authority).installsAndPlans(t)
}

// startRegistry starts a registry of images with TLS.
func startRegistry(t *testing.T) (address, authority string, client *http.Client) {
	t.Helper()
	binary, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("there is no docker-registry here")
	}
	dir := t.TempDir()
	ca, err := fakehttp.New()
	if err != nil {
		t.Fatal(err)
	}
	config, err := ca.ServerConfig("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it finds a free port
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	_ = listener.Close()
	pair := config.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	write(t, dir+"/cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
	authority = dir + "/ca.pem"
	write(t, authority, ca.PEM())
	write(t, dir+"/config.yml", fmt.Appendf(nil, "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"+
		"storage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: %q, tls: {certificate: %s/cert.pem, key: %s/key.pem}}\n",
		dir, address, dir, dir))
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, binary, "serve", dir+"/config.yml")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait()
	})
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	client = &http.Client{Transport: transport}
	for end := time.Now().Add(time.Minute); ; <-time.After(50 * time.Millisecond) {
		resp, err := client.Get("https://" + address + "/v2/") //nolint:noctx // the client of the test
		if err == nil {
			_ = resp.Body.Close()
			return address, authority, client
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestMirror_keepsFormerReleases(t *testing.T) {
	t.Parallel()
	find(t)
	to := t.TempDir()
	others := []string{"packed/registry.opentofu.org/hashicorp/vault/index.json", "packed/registry.terraform.io/hashicorp/vault/index.json"}
	for _, other := range others {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, other)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, other), []byte("{}"))
	}
	for _, version := range []string{"0.9.8", "0.10.0-rc1", "0.9.8"} {
		files := t.TempDir()
		write(t, filepath.Join(files, project+"_"+version+"_linux_amd64.zip"), zipOf(t, project+"_v"+version))
		sign(t, files, version)
		if output, err := mirror(t, fingerprint(t), files, to); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
	}
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		var index struct{ Versions map[string]any }
		if err := json.Unmarshal(read(t, to, "packed", registry, "terraform-provider-metal/metal/index.json"), &index); err != nil {
			t.Fatal(err)
		}
		if _, has := index.Versions["0.10.0-rc1"]; !has || len(index.Versions) != 2 {
			t.Errorf("%s has %v", registry, index.Versions)
		}
		for _, version := range []string{"0.9.8", "0.10.0-rc1"} {
			read(t, to, "unpacked", registry, "terraform-provider-metal/metal", version, "linux_amd64", project+"_v"+version)
		}
	}
	for _, other := range others {
		read(t, to, other)
	}
}

func TestMirror_refusesWhatTheKeyHasNotSigned(t *testing.T) {
	t.Parallel()
	r := find(t)
	key := fingerprint(t)
	for name, of := range map[string]struct{ key, spoil, want string }{
		"another key":         {strings.Repeat("0", 40), "true", "another key than"},
		"no fingerprint":      {"test@example.com", "true", "is not a fingerprint"},
		"two fingerprints":    {key + "\n" + key, "true", "is not a fingerprint"},
		"another zip":         {key, "echo >> a.zip; mv a.zip " + project + "_" + r.version + "_linux_amd64.zip", "is not as"},
		"an unknown zip":      {key, "cp a.zip " + project + "_" + r.version + "_linux_arm64.zip", "does not name"},
		"another list":        {key, "sha256sum *.zip >> *_SHA256SUMS", "the signature of"},
		"no signature":        {key, "rm *.sig", "the signature of"},
		"no checksums":        {key, "rm *_SHA256SUMS", "must have one file"},
		"only another's file": {key, "rm *.zip", "is not as"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, to := t.TempDir(), filepath.Join(t.TempDir(), "mirror")
			write(t, filepath.Join(files, project+"_"+r.version+"_linux_amd64.zip"), []byte("a zip"))
			sign(t, files, r.version)
			write(t, filepath.Join(files, "a.zip"), []byte("a zip"))
			shell(t, files, of.spoil)
			output, err := mirror(t, of.key, files, to)
			if err == nil || !strings.Contains(output, of.want) {
				t.Errorf("it says %v and not %q:\n%s", err, of.want, output)
			}
			if _, err := os.Stat(to); err == nil {
				t.Error("it has made a mirror")
			}
		})
	}
}

func TestMirror_refusesARevokedKey(t *testing.T) {
	t.Parallel()
	r := find(t)
	home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	files, to := t.TempDir(), filepath.Join(t.TempDir(), "mirror")
	write(t, filepath.Join(files, project+"_"+r.version+"_linux_amd64.zip"), []byte("a zip"))
	sums := project + "_" + r.version + "_SHA256SUMS"
	output := shell(t, files, `export GNUPGHOME=`+home+`
trap 'gpgconf --kill gpg-agent' EXIT
gpg --batch --quiet --passphrase '' --quick-gen-key other@example.com rsa3072 sign never
sha256sum *.zip > `+sums+`
gpg --batch --quiet --detach-sign `+sums+`
sed -i 's/^:---/---/' $GNUPGHOME/openpgp-revocs.d/*.rev
gpg --batch --quiet --import $GNUPGHOME/openpgp-revocs.d/*.rev
key=$(basename $GNUPGHOME/openpgp-revocs.d/*.rev .rev)
bash "$METAL_DIST/mirror.sh" "$key" . `+to+` || echo "refused"`)
	if !strings.HasSuffix(output, "is revoked, or has expired\nrefused\n") {
		t.Errorf("it says\n%s", output)
	}
}
