/** The tags around texts of the gateway for a model: `<context>` before a prompt, `<earlier>` for turns that are not shown. */

// Not `\s*\/?\s*`, which takes time that grows with the square of blanks.
const OWN = /<(?=\s*(?:\/\s*)?(?:context|earlier)\s*>)/gi

/** The text of somebody else, in which such a tag has another character at its beginning and means nothing. */
export function withoutOwnTags(text: string): string {
	// Most texts have none, and each run checks all texts of its conversation.
	return text.includes('<') ? text.replace(OWN, '‹') : text
}
