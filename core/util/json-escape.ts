/** A character as JSON escapes: one for each of its code units, such as `\u202e`. */
export function jsonEscape(character: string): string {
	return character.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
