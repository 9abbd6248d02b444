package notes

// KeyReplaced is the key of the note which says for which value of replaced the node was undeployed, or taken out of the pool: a run with
// an older state does not repeat that. See internal/host.
const KeyReplaced = "terraform_metal_replaced"
