package simulate_test

// haltTheme is about applies that the user ends while machines wait for each other.
func haltTheme() theme {
	return theme{name: "interruptions", halts: true, begin: func(l *tale) {
		for _, name := range []string{"a", "b", "c"} {
			l.config["metal_host."+name] = object{
				"name": name, "driver": "fake-hardware", "resource_class": "baremetal",
				"target_state": "available", "automated_clean": false,
			}
		}
		l.apply()
	}, moves: []move{
		deployAll, deployAll, deployAll, undeployAll, changeDeployment, changeDeployment, changeReady, changeReady,
		growHosts, renameHost,
	}}
}

// deployAll deploys on all hosts.
func deployAll(l *tale) string {
	done := false
	for _, address := range l.hosts() {
		if deployment := deploymentOf(address); l.config[deployment] == nil {
			l.config[deployment] = object{"node_id": reference{address, "id"}, "image": imageAt("http://images.test/v1")}
			done = true
		}
	}
	if !done {
		return ""
	}
	return "deploy on all hosts"
}

func undeployAll(l *tale) string {
	all := l.deployments()
	for _, address := range all {
		delete(l.config, address)
	}
	if len(all) == 0 {
		return ""
	}
	return "undeploy all hosts"
}
