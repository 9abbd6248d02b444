package bootiso

import (
	"encoding/csv"
	"os"
	"testing"
)

// TestTheTableDecidesEveryCombination compares the decision with all 112 combinations of facts that can be.
func TestTheTableDecidesEveryCombination(t *testing.T) {
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
			Installing: is(0), Registered: is(1), Newer: is(2), SharedObsolete: is(3), OwnAtBoot: is(4), OwnObsolete: is(5), OwnUnused: is(6), Settled: is(7),
		}
		if got := f.decide(); got.action != Action(row[8]) || got.stale != is(9) {
			t.Errorf("row %v: got %s, stale %v (%s)", row, got.action, got.stale, got.why)
		}
	}
}

// everyFact calls do with all combinations of facts, those that cannot be among them.
func everyFact(do func(Facts)) {
	for n := range 1 << 8 {
		is := func(i int) bool { return n>>i&1 == 1 }
		do(Facts{is(0), is(1), is(2), is(3), is(4), is(5), is(6), is(7)})
	}
}

func TestAMachineRestartsOnlyForASettledNewerImageThatConcernsIt(t *testing.T) {
	t.Parallel()
	reboots := 0
	everyFact(func(f Facts) {
		r := f.decide()
		if r.action != Reboot {
			return
		}
		reboots++
		if f.Installing || !f.Newer || !f.Settled || !r.stale {
			t.Errorf("%+v: %+v", f, r)
		}
		if f.Registered && f.OwnAtBoot && !f.OwnObsolete {
			t.Errorf("%+v is restarted though its own configuration is current", f)
		}
	})
	if reboots == 0 {
		t.Error("nothing ever restarts")
	}
}

func TestNothingWaitsForASettledNewerImage(t *testing.T) {
	t.Parallel()
	everyFact(func(f Facts) {
		if f.decide().action == Wait && f.Newer && f.Settled {
			t.Errorf("%+v waits", f)
		}
	})
}
