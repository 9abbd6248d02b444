package timeline_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/deploy"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/fake/fakeironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/ironic/api"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/selection"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/timeline"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/operator/watch"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/ironictest"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/test/sitetest"
)

// watching records what happens at a site until the returned function is called.
func watching(t *testing.T, fake *fakeironic.Server, file string) (stop func()) {
	t.Helper()
	client := sitetest.NewClient(fake).Ironic
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		m := watch.NewModel("", 0)
		_, err := watch.Run(ctx, m, watch.Options{
			List: func(ctx context.Context) (watch.Sample, error) {
				return watch.List(ctx, client, selection.Selection{}.Follow())
			},
			MayPass:  api.MayPass,
			Interval: 10 * time.Second,
			Displays: []watch.Display{&watch.Recorder{File: file, Title: "a site", Model: m}},
		})
		ended <- err
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// records reads the record in a file.
func records(t *testing.T, file string) [][]watch.Entry {
	t.Helper()
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	entries, torn, err := watch.ReadRecord(from)
	if err != nil || torn > 0 {
		t.Fatalf("%d torn lines, %v", torn, err)
	}
	return [][]watch.Entry{entries}
}

// told returns the life of a machine as text.
func told(t *testing.T, fake *fakeironic.Server, ref string, records [][]watch.Entry) string {
	t.Helper()
	facts, err := timeline.Read(t.Context(), sitetest.NewClient(fake).Ironic, ref, records)
	if err != nil {
		t.Fatal(err)
	}
	life := timeline.Join(facts)
	var text bytes.Buffer
	if err := life.Text(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// The page gives a change of power and a ready check the colours that they have on the page of the watch which recorded them.
func TestLife_hasTheColoursOfTheWatch(t *testing.T) {
	t.Parallel()
	dir, m := t.TempDir(), watch.NewModel("", 0)
	file, page := filepath.Join(dir, "record.jsonl"), filepath.Join(dir, "page.html")
	r := &watch.Recorder{File: file, Title: "a site", Model: m}
	for i, machine := range []watch.Machine{
		{State: "active"},
		{State: "active", Power: "rebooting", InProgress: true},
		{State: "active"},
		{State: "active", Checked: true, InProgress: true},
		{State: "deploying", Power: "rebooting", InProgress: true},
	} {
		machine.ID, machine.Name, machine.Since = "n1", "rack1-01", at(1)
		changes := m.Add(watch.Sample{Taken: at(float64(10 * (i + 1))), Machines: []watch.Machine{machine}})
		if err := r.Update(m.View(at(float64(10*(i+1)))), changes); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.End(m.View(at(60))); err != nil {
		t.Fatal(err)
	}
	life := timeline.Join(timeline.Facts{
		Subject: "node rack1-01", Now: at(60),
		Machines: []timeline.Evidence{{ID: "n1", Name: "rack1-01", Records: records(t, file)}},
	})
	if err := life.WritePage(page); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var bars []string
	for _, bar := range regexp.MustCompile(`<i class="(\w+)" style="[^"]*" title="([^:]*):`).FindAllStringSubmatch(string(html), -1) {
		bars = append(bars, bar[2]+" is "+bar[1])
	}
	if got, want := strings.Join(bars, "; "), "active is active; active, restarting is power; active is active; active, ready check is "+
		"check; deploying, restarting is deploy"; got != want {
		t.Errorf("the bars: %s\nwant: %s", got, want)
	}
}

// A deployment that fails once, as the life of its machine tells it: with a record and without, on 21.4 and on 39.0.
func TestLife_ofAFailedDeployment(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.82", ""} {
		ironictest.InVirtualTime(t, func(t *testing.T) {
			fake := &fakeironic.Server{MaxMicroversion: version, StepTime: 3 * time.Minute}
			fake.AddFleet(1, "baremetal")
			fake.Set("node-000", "deploy_interface", "direct")
			<-time.After(24 * time.Hour)
			id, file := ironictest.NodeOf(t, fake, "node-000").UUID, filepath.Join(t.TempDir(), "record.jsonl")
			failures := 1
			fake.Fail = func(_ fakeironic.Node, verb string) string {
				if verb == "active" && failures > 0 {
					failures--
					return "Deploy step deploy.write_image failed: Error writing image to device /dev/sda: Input/output error"
				}
				return ""
			}
			stop := watching(t, fake, file)
			<-time.After(time.Minute)
			client := sitetest.NewClient(fake)
			a, err := sitetest.Allocate(t.Context(), client, ironic.AllocationSpec{
				UUID: ironic.NewUUID(), Name: "web-0",
				ResourceClass: "baremetal",
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := client.Deploy(t.Context(), id, sitetest.Debian("12"), deploy.DeployOptions{
				Instance: a.UUID, Attempts: 2,
				Timeout: 4 * time.Hour,
			}); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
			stop()
			<-time.After(time.Hour)
			hide := strings.NewReplacer(id, "NODE", a.UUID, "ALLOCATION", client.Run.ID, "RUN")
			name := "life-39.txt"
			if version != "" {
				name = "life-21.4.txt"
			}
			golden(t, name, hide.Replace(told(t, fake, "node-000", records(t, file))+"\n====\n\n"+told(t, fake, "node-000", nil)+
				"\n====\n\n"+told(t, fake, "web-0", records(t, file))))
		})
	}
}
