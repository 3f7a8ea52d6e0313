package dialect

import "regexp"

// A Measure counts the matches of a pattern in prose.
type Measure struct {
	// Name is the column of the table and of the file of limits.
	Name string
	// Limit is the most matches per thousand lines that a folder without limits of its own may have.
	// It is about twice the highest rate of Karpenter and Cluster API.
	Limit int

	pattern *regexp.Regexp
}

// Measures are the habits that Drover's texts are held against, in the order of the table. The
// glossary, docs/glossary.md, has the words to use instead.
//
// The models, per thousand lines, measured with "prose -skip-tests -only go" and "-only md":
//
//	                               lines   say  tell  nobody  what  private
//	Karpenter v1.9.0, comments      4840   1.4   0.4     0.0   1.9      0.2
//	Karpenter v1.9.0, docs          1638   1.2   1.2     1.8   2.4      1.2
//	Cluster API v1.12.0, comments  33908   0.1   0.2     0.0   0.5      0.1
//	Cluster API v1.12.0, docs      36553   0.4   0.1     3.5   1.6      0.4
var Measures = []Measure{
	{Name: "say", Limit: 3, pattern: words(`say|says|said|saying`)},
	{Name: "tell", Limit: 2, pattern: words(`tell|tells|told|telling`)},
	{Name: "nobody", Limit: 7, pattern: words(`somebody|nobody|anybody|everybody|whoever|others`)},
	{Name: "what", Limit: 5, pattern: words(`what (?:is|was|are|were|has|had|it|they|he|she|a|an|the|no|that|this|follows|needs|makes)`)},
	{Name: "private", Limit: 2, pattern: words(`mend|mends|mended|mending|(?:take|takes|taken|took|taking) on|` +
		`(?:give|gives|given|gave|giving) up|(?:come|comes|came|coming) up|anew|for good|all the same`)},
}

// words matches whole words, in any case.
func words(alternatives string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + alternatives + `)\b`)
}
