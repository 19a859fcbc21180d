/** Markdown for the gateway's own code; the console's pages use `lexBounded` directly. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Token } from 'marked'

/** As `lexBounded`. Yields to other work before it begins. */
export async function lex(text: string): Promise<Token[]> {
	await turn()
	const { lexBounded } = await import('./bounded-markdown.ts') // loaded on first use
	return lexBounded(text)
}
