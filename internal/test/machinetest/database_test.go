package machinetest_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// What tools/ironic-up tells of the Ironic of the network provisioning.
const (
	stateFolder = "METAL_MACHINE_STATE"
	sqlCommand  = "METAL_MACHINE_SQL"
)

// sql runs statements in Ironic's database, and returns their rows.
func (r *rack) sql(statements string) (rows string) {
	r.t.Helper()
	command := append(strings.Fields(os.Getenv(sqlCommand)), "--execute", statements)
	out, err := exec.CommandContext(r.t.Context(), command[0], command[1:]...).CombinedOutput() //nolint:gosec // of tools/ironic-up
	if err != nil {
		r.t.Fatalf("%s: %v: %s", statements, err, out)
	}
	return string(out)
}

// tables returns a statement for each table with records; TBL in it stands for the name.
func (r *rack) tables(statement string) (all string) {
	r.t.Helper()
	for _, table := range strings.Fields(r.sql("SHOW TABLES")) {
		if table != "alembic_version" {
			all += strings.ReplaceAll(statement, "TBL", table) + ";"
		}
	}
	return all
}

// backUp keeps all records of Ironic for restoreBackup.
func (r *rack) backUp() {
	r.t.Helper()
	r.sql("CREATE DATABASE backup;" + r.tables("CREATE TABLE backup.TBL AS SELECT * FROM TBL"))
}

// restoreBackup gives Ironic the records that it had when backUp ran, without the locks of the conductor of then.
func (r *rack) restoreBackup() {
	r.t.Helper()
	r.sql("SET FOREIGN_KEY_CHECKS = 0; BEGIN;" + r.tables("DELETE FROM TBL; INSERT INTO TBL SELECT * FROM backup.TBL") +
		"UPDATE nodes SET reservation = NULL; COMMIT")
	r.restartConductor()
}

// loseDatabase gives Ironic an empty database.
func (r *rack) loseDatabase() {
	r.t.Helper()
	r.sql("SET FOREIGN_KEY_CHECKS = 0; BEGIN;" + r.tables("DELETE FROM TBL") + "COMMIT")
	r.restartConductor()
}

// conductor returns the process ID of Ironic's conductor.
func (r *rack) conductor() int {
	text, _ := os.ReadFile(filepath.Join(os.Getenv(stateFolder), "conductor.pid")) // it is being written
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// restartConductor ends Ironic's conductor, and waits until another one serves.
func (r *rack) restartConductor() {
	r.t.Helper()
	old := r.conductor()
	if err := syscall.Kill(old, syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	r.await("another conductor", func() bool {
		if now := r.conductor(); now == old || now == 0 {
			return false
		}
		_, answer := r.Call(http.MethodGet, "drivers", nil)
		drivers, _ := answer["drivers"].([]any)
		return len(drivers) > 0
	})
}

// configure adds options of conductors to Ironic's configuration, and restarts its conductor.
func (r *rack) configure(options string) {
	r.t.Helper()
	path := filepath.Join(os.Getenv(stateFolder), "ironic.conf")
	was, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(was, "[conductor]\n"+options...), 0o644)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.restartConductor()
}
