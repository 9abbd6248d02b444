// Command clients runs the tests of other clients of Ironic, which no one here wrote, on the fake, as Ironic 21.4 and as Ironic 39, and
// what clients of BMCs can do on the fake BMC.
//
//	clients [-ironic URL] [SUITE...]    without SUITE, all
//
// It fails if a test fails, unless the suite lists it as of no concern. With -ironic, the tests run on an Ironic without authentication,
// such as that of tools/ironic-up, and clients prints those that fail: a column to compare with that of the fake. The suite baremetal keeps
// what that Ironic answers, for the fake to answer the same.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ironic := flag.String("ironic", "", "URL of a real Ironic")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *ironic, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// version is an Ironic that the fake is: the highest version of its API, and its OpenStack release as gophercloud calls it.
type version struct {
	ironic, api, release string
	real                 string // the URL of a real one in the place of the fake
}

var versions = []version{{"21.4", "1.82", "stable/2023.1", ""}, {"39", "1.115", "master", ""}}

// choose returns the versions to test: all of the fake, or that of a real Ironic.
func choose(ctx context.Context, real string) ([]version, error) {
	if real == "" {
		return versions, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, real+"/v1", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	newest := answer.Header.Get("X-OpenStack-Ironic-API-Maximum-Version")
	for _, v := range versions {
		if v.api == newest {
			v.real = real
			return []version{v}, answer.Body.Close()
		}
	}
	return nil, errors.Join(fmt.Errorf("%s has API %q, and the fake is no such Ironic", real, newest), answer.Body.Close())
}

// suite are tests of a client.
type suite struct {
	name    string
	prepare func(ctx context.Context, dir string) error // makes what run needs in dir
	run     func(ctx context.Context, dir string, v version) (*results, error)
	ofBMC   bool // it runs on the fake BMC, which has no versions

	unconcerned []unconcerned
}

// unconcerned are tests that fail and do not concern us, by a regular expression of their names.
type unconcerned struct {
	tests, why string
	only       string // the version of Ironic on which they fail; "": both
}

func (u unconcerned) isOf(v version) bool { return u.only == "" || u.only == v.ironic }

// results are the outcomes of tests, by name: PASS, FAIL or SKIP, and what the tests said.
type results struct {
	outcomes map[string]string
	said     bytes.Buffer
}

// run runs the suites with these names.
func run(ctx context.Context, real string, names []string) (err error) {
	wanted, err := choose(ctx, real)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "metal-clients-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range names {
		if !slices.ContainsFunc(suites, func(s suite) bool { return s.name == name }) {
			return fmt.Errorf("there is no suite %q", name)
		}
	}
	var faults []error
	for _, s := range suites {
		if len(names) > 0 && !slices.Contains(names, s.name) || s.ofBMC && real != "" {
			continue
		}
		place := filepath.Join(dir, s.name)
		if err := os.Mkdir(place, 0o700); err != nil {
			return err
		}
		if err := s.prepare(ctx, place); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		on := wanted
		if s.ofBMC {
			on = []version{{}}
		}
		for _, v := range on {
			got, err := s.run(ctx, place, v)
			if err != nil {
				return fmt.Errorf("%s: %w", s.on(v), err)
			}
			if err := s.judge(v, got); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return errors.Join(faults...)
}

// on names the suite and what it runs on.
func (s *suite) on(v version) string {
	if s.ofBMC {
		return s.name + ", BMC"
	}
	return s.name + ", Ironic " + v.ironic
}

// judge prints how many tests passed, and returns an error if others failed than those that may.
func (s *suite) judge(v version, got *results) error {
	counts, may := map[string]int{}, make([]int, len(s.unconcerned))
	var wrong []string
	for name, outcome := range got.outcomes {
		counts[outcome]++
		at := slices.IndexFunc(s.unconcerned, func(u unconcerned) bool {
			return u.isOf(v) && regexp.MustCompile(u.tests).MatchString(name)
		})
		switch {
		case outcome == "FAIL" && v.real != "":
			fmt.Println("  fails:", name)
		case outcome == "FAIL" && at < 0:
			wrong = append(wrong, name+" fails")
		case outcome == "FAIL":
			may[at]++
		}
	}
	fmt.Printf("%s: %d passed, %d skipped, %d failed\n", s.on(v), counts["PASS"], counts["SKIP"], counts["FAIL"])
	for i, u := range s.unconcerned {
		if !u.isOf(v) || v.real != "" {
			continue
		}
		fmt.Printf("  %d of %s do not concern us: %s\n", may[i], u.tests, u.why)
		if may[i] == 0 {
			wrong = append(wrong, u.tests+" is listed as failing, and nothing of it fails")
		}
	}
	if len(got.outcomes) == 0 {
		wrong = append(wrong, "no test ran")
	}
	if len(wrong) == 0 {
		return nil
	}
	_, _ = os.Stderr.Write(got.said.Bytes())
	slices.Sort(wrong)
	return fmt.Errorf("%s: %s", s.on(v), strings.Join(wrong, "; "))
}
