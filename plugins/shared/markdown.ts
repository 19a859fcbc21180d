/** Markdown for programs of the gateway itself; the console's pages use `lexBounded` directly. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Token } from 'marked'

/** As `lexBounded`. Others get their turn before it begins. */
export async function lex(text: string): Promise<Token[]> {
	await turn()
	const { lexBounded } = await import('./bounded-markdown.ts') // an idle gateway does not have it in memory
	return lexBounded(text)
}
