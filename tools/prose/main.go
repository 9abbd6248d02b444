// prose checks the language of what users read: docs/, README.md and the other pages at the root of the repository.
//
//	go -C tools run ./prose [-counts] ..
//
// It reports words from its own list, sentences over 40 words, pages over their limit, and links without a target. With -counts it prints
// the number of words of each page.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	counts := flag.Bool("counts", false, "print the number of words of each page")
	flag.Parse()
	root := flag.Arg(0)
	if root == "" {
		root = "."
	}
	found, err := run(root, *counts)
	for _, f := range found {
		fmt.Println(f)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	case len(found) > 0:
		fmt.Fprintf(os.Stderr, "prose: %d findings. The word list and the limits are in tools/prose/rules.go.\n", len(found))
		os.Exit(1)
	}
}

// run checks every page of the repository at root.
func run(root string, counts bool) ([]string, error) {
	paths, err := pages(root)
	if err != nil {
		return nil, err
	}
	site := &site{root: root, anchors: map[string]map[string]bool{}}
	var found []string
	for _, path := range paths {
		source, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		if counts {
			fmt.Printf("%6d %s\n", len(strings.Fields(string(source))), path)
		}
		found = append(found, check(site, path, source)...)
	}
	return found, nil
}

// pages are the Markdown files that users and contributors read, relative to root.
func pages(root string) ([]string, error) {
	var paths []string
	for _, folder := range []string{".", "docs", ".github", "modules"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			relative, _ := filepath.Rel(root, path)
			switch {
			case os.IsNotExist(err):
				return nil
			case err != nil:
				return err
			case entry.IsDir() && folder == "." && relative != ".", entry.IsDir() && entry.Name() == ".terraform":
				return fs.SkipDir
			case strings.HasSuffix(path, ".md"):
				paths = append(paths, filepath.ToSlash(relative))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(paths)
	return paths, nil
}
