package lint

import "path/filepath"

// SARIF returns findings in the format of code scanners, SARIF 2.1.0.
func SARIF(found []Finding) any {
	type object map[string]any
	results := make([]object, len(found))
	for i, f := range found {
		results[i] = object{"ruleId": "unknown-key", "level": "error", "message": object{"text": f.Text}, "locations": []object{{
			"physicalLocation": object{
				"artifactLocation": object{"uri": filepath.ToSlash(f.File)},
				"region":           object{"startLine": f.Line, "startColumn": f.Column},
			},
		}}}
	}
	rule := object{"id": "unknown-key", "shortDescription": object{"text": "Key that Terraform drops"}}
	return object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": []object{{
		"tool": object{"driver": object{"name": "metal lint", "rules": []object{rule}}}, "results": results,
	}}}
}
