import { Fault } from '../errors.ts'

/** Deeper data is left to the codec, which refuses what it cannot write. */
const DEPTH = 200

/**
 * Throws `invalid_request` for what would be stored as something else: a Map, a Set, numbers in a typed array, an object
 * that contains itself.
 */
export function mustBePlain(value: unknown): void {
	const problem = problemIn(value, [], [])
	if (problem !== undefined) throw new Fault('invalid_request', `the value is not plain data: ${problem}`)
}

/** `above`: the objects that contain this one, which is at `path`. */
function problemIn(value: unknown, path: string[], above: object[]): string | undefined {
	if (typeof value !== 'object' || value === null || value instanceof Uint8Array || 'toJSON' in value) return undefined
	const at = path.join('.') || 'it'
	if (above.includes(value)) return `${at} contains itself`
	if (value instanceof Map || value instanceof Set || value instanceof ArrayBuffer || ArrayBuffer.isView(value))
		return `${at} is a ${value.constructor.name}; store a list, an object or a Uint8Array`
	if (above.length === DEPTH) return undefined
	above.push(value)
	for (const name of Object.keys(value)) {
		const item = (value as Record<string, unknown>)[name]
		if (typeof item !== 'object') continue
		path.push(name)
		const problem = problemIn(item, path, above)
		if (problem !== undefined) return problem
		path.pop()
	}
	above.pop()
	return undefined
}
