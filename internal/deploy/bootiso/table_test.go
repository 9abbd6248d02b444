package bootiso

import (
	"encoding/csv"
	"os"
	"testing"
)

// TestTable_everyCombinationOfFacts compares the decision with all 112 combinations of facts that can be.
func TestTable_everyCombinationOfFacts(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/truth.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 113 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows[1:] {
		is := func(column int) bool { return row[column] == "1" }
		f := Facts{
			Installing: is(0), Registered: is(1), Newer: is(2), SharedObsolete: is(3), HostAtBoot: is(4), HostObsolete: is(5),
			HostUnused: is(6), Settled: is(7),
		}
		if got := f.rule(); got.action != Action(row[8]) || got.stale != is(9) {
			t.Errorf("row %v: got %s, stale %v (%s)", row, got.action, got.stale, got.why)
		}
	}
}

// everyFact calls do with all combinations of facts, including impossible ones.
func everyFact(do func(Facts)) {
	for n := range 1 << 8 {
		is := func(i int) bool { return n>>i&1 == 1 }
		do(Facts{is(0), is(1), is(2), is(3), is(4), is(5), is(6), is(7)})
	}
}

func TestTable_rebootNeedsASettledNewerImage(t *testing.T) {
	t.Parallel()
	reboots := 0
	everyFact(func(f Facts) {
		r := f.rule()
		if r.action != Restart {
			return
		}
		reboots++
		if f.Installing || !f.Newer || !f.Settled || !r.stale {
			t.Errorf("%+v: %+v", f, r)
		}
		if f.Registered && f.HostAtBoot && !f.HostObsolete {
			t.Errorf("%+v is restarted though its own configuration is current", f)
		}
	})
	if reboots == 0 {
		t.Error("nothing ever restarts")
	}
}

func TestTable_neverWaitsForASettledNewerImage(t *testing.T) {
	t.Parallel()
	everyFact(func(f Facts) {
		if f.rule().action == Wait && f.Newer && f.Settled {
			t.Errorf("%+v waits", f)
		}
	})
}
