import { jsonIn } from '../../core/util/json-in.ts'
import { programLimits } from '../../sandbox/host-protocol.ts'

/** Parses JSON from a program's process. Undefined if it is invalid or nested too deeply. */
export function readJson(text: string): unknown {
	return isTooDeep(text) ? undefined : jsonIn(text)
}

/** V8 parses JSON of any depth, but recursive functions over it, such as `JSON.stringify`, overflow the stack. */
function isTooDeep(text: string): boolean {
	let depth = 0
	let quoted = false
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at)
		if (quoted) {
			if (code === 0x5c) at++
			else if (code === 0x22) quoted = false
		} else if (code === 0x22) quoted = true
		else if (code === 0x5b || code === 0x7b) {
			if (++depth > programLimits.depth) return true
		} else if (code === 0x5d || code === 0x7d) depth--
	}
	return false
}
