/** The types of joi itself. A type that a plugin adds to joi may do anything. */
export const plainTypes: ReadonlySet<unknown> = new Set(
	'alternatives any array binary boolean date link number object string symbol'.split(' '),
)
