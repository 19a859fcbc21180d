/** The tags around texts of the gateway for a model: `<context>` before a prompt, `<earlier>` for turns that are omitted. */

// Not `\s*\/?\s*`, which needs quadratic time for many blanks.
const OWN = /<(?=\s*(?:\/\s*)?(?:context|earlier)\s*>)/gi

/** Escapes these tags in a text that is not from the gateway: their first character is replaced. */
export function withoutOwnTags(text: string): string {
	// Fast path: most texts have none, and each run checks all texts of its conversation.
	return text.includes('<') ? text.replace(OWN, '‹') : text
}
