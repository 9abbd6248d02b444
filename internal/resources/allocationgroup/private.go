package allocationgroup

// private is what private state keeps of a group: see framework.KeepPrivate.
type private struct {
	Imported bool `json:"imported,omitzero"` // nothing was applied since the import
}
