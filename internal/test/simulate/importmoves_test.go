package simulate_test

// importTheme is about what others have made, which is imported and then changed.
func importTheme() theme {
	return theme{name: "imports", begin: func(l *tale) {
		theirs := &tale{life: &life{site: l.site, space: l.workspace("theirs", nil)}, t: l.t, config: installed("v1")}
		switch l.below(4) {
		case 0:
			theirs.config = booted("v1", "n1")
		case 1:
			theirs.config = with(theirs.config, "metal_deployment.a", "config_drive",
				object{"hostname": "host0", "user_data_wo": userSecret, "user_data_wo_version": "1"})
		}
		if l.below(2) == 0 {
			theirs.allocate()
		}
		theirs.apply()
		l.config = theirs.config.clone()
		l.space.imports = map[string]string{}
		for address := range l.config {
			l.space.imports[address] = theirs.space.text(address, "id")
		}
		l.forget()
		if end := l.run(l.t, l.config, trouble{}); end.failed {
			l.broken("the import has failed")
		}
		if len(l.verbsOf()) > 0 {
			l.broken("the import has moved the machine: %v", l.verbsOf())
		}
		l.mustBeDone(l.t, l.config)
	}, moves: []move{
		changeDeployment, changeDeployment, changeDeployment, newISO, changeRescue, changePassword, renameHost,
		changeProtection,
	}}
}
