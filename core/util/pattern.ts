/** `*` matches any characters, also none; every other character matches itself. Takes time in proportion to both lengths. */
export function matches(pattern: string, name: string): boolean {
	const parts = pattern.split('*')
	const first = parts.shift() ?? ''
	const last = parts.pop()
	if (last === undefined) return name === first
	if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false
	const end = name.length - last.length
	let at = first.length
	for (const part of parts) {
		const found = name.indexOf(part, at)
		if (found < 0 || found + part.length > end) return false
		at = found + part.length
	}
	return true
}
