// Command terraform-provider-metal serves the provider to Terraform and OpenTofu.
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/terraform-provider-metal/terraform-provider-metal/internal/base/tracing/export"
	"github.com/terraform-provider-metal/terraform-provider-metal/internal/provider"
)

// version is set at build time.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger: print how to attach, and stay")
	flag.Parse()
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	} else if err := provider.Quiet(os.LookupEnv, os.Setenv); err != nil {
		log.Fatal(err)
	}
	server := provider.NewServer(version)
	server.Trace(export.Start(context.Background(), os.Getenv, export.Program{
		Name: "terraform-provider-metal", Version: version, Clean: server.CleanLine, Console: os.Stderr, Report: func(err error) {
			log.Print(err)
		},
	}))
	err := tf6server.Serve(provider.Address, func() tfprotov6.ProviderServer { return server }, options...)
	server.Close(context.Background())
	if err != nil {
		log.Fatal(err)
	}
}
