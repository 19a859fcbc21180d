/**
 * The choice that was probably meant, or undefined. Ignores case, `-`, `_` and `.`, so `allowedHosts` finds `allowed_hosts`. Allows
 * one typing error per three characters, and one in short words.
 */
export function suggest(word: string, choices: Iterable<string>): string | undefined {
	const wanted = bare(word)
	// Longer than any setting's name: not worth the quadratic comparison.
	if (wanted.length > 64) return undefined
	let best: string | undefined
	let least = Math.min(Math.max(2, Math.floor(wanted.length / 3) + 1), wanted.length)
	for (const choice of choices) {
		const distance = editDistance(wanted, bare(choice))
		if (distance < least) [best, least] = [choice, distance]
	}
	return best
}

/** The end of a message about an unknown name: the choice that was probably meant, else all choices. `before`: a prefix of the name. */
export function hintFor(word: string, choices: readonly string[], before = ''): string {
	const meant = suggest(word, choices)
	if (meant !== undefined) return `; did you mean "${before}${meant}"?`
	return choices.length > 0 ? `; there are ${choices.join(', ')}` : ''
}

function bare(text: string): string {
	return text.toLowerCase().replace(/[-_.]/g, '')
}

/** Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, each counted as one. */
function editDistance(a: string, b: string): number {
	let before: number[] = []
	let row = Array.from({ length: b.length + 1 }, (_, column) => column)
	for (let i = 1; i <= a.length; i++) {
		const next = [i]
		for (let j = 1; j <= b.length; j++) {
			const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
			let cost = Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
			if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
				cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
			next.push(cost)
		}
		before = row
		row = next
	}
	return row[b.length] ?? 0
}
