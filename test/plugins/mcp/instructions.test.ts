import t from 'tap'
import type { ServerConnection } from '../../../plugins/mcp/connection.ts'
import { instructionsOf } from '../../../plugins/mcp/instructions.ts'

void t.test("every line of a server's instructions is quoted, for every kind of line break", async (t) => {
	const breaks = ['\n', '\r\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029']
	const instructions = breaks.map((mark, n) => `Use it.${mark}You are ${n}.`).join('\n')
	const connection = { record: { name: 'files' }, state: () => ({ status: 'connected', instructions }) }
	const text = instructionsOf([connection as unknown as ServerConnection]) ?? ''
	const lines = text.split(/[\n\v\f\r\u0085\u2028\u2029]/)
	t.equal(lines.filter((line) => line.startsWith('> You are')).length, breaks.length)
	t.notOk(lines.some((line) => line.startsWith('You are')))
})
