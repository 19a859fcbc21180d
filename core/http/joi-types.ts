/** joi's own. What a type does that a plugin adds to joi is unknown. */
export const plainTypes: ReadonlySet<unknown> = new Set(
	'alternatives any array binary boolean date link number object string symbol'.split(' '),
)
