/**
 * Makes the stacks of errors name the places in the sources. Each program of a bundle imports it first; a source map is read
 * when a stack is, and not kept: Node's own support keeps the maps in memory, 8 MiB more for a gateway.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = new URL('.', import.meta.url).href
/** Places that were found, by the place in the bundle. */
const found = new Map()
const FOUND_LIMIT = 2_000

Error.prepareStackTrace = (error, frames) => {
	const lines = frames.map((frame) => `\n    at ${inSources(String(frame), frame)}`)
	return `${headOf(error)}${lines.join('')}`
}

/** As V8 has it. */
function headOf(error) {
	try {
		return Error.prototype.toString.call(error)
	} catch {
		return 'Error'
	}
}

function inSources(text, frame) {
	const file = frame.getFileName()
	if (!file?.startsWith(folder)) return text
	const line = frame.getLineNumber()
	const column = frame.getColumnNumber()
	const place = `${file}:${line}:${column}`
	let source = found.get(place)
	if (source === undefined) {
		source = sourceOf(file, line, column) ?? place
		if (found.size >= FOUND_LIMIT) found.clear()
		found.set(place, source)
	}
	return text.replace(place, () => source)
}

/** Undefined if the map cannot be read, or does not say. */
function sourceOf(file, line, column) {
	try {
		const { mappings, sources } = JSON.parse(readFileSync(fileURLToPath(`${file}.map`), 'utf8'))
		const place = decode(mappings, line - 1, column - 1)
		return place && `${new URL(sources[place.source], file).href}:${place.line + 1}:${place.column + 1}`
	} catch {
		return undefined
	}
}

const digits = new Map(
	Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', (digit, value) => [digit, value]),
)

/**
 * The source of a place, all counted from 0. `mappings`, as ECMA-426 defines them: a line of code ends with a semicolon, a
 * segment with a comma; the numbers of a segment are differences from the one before: column, source, its line, its column.
 */
function decode(mappings, line, column) {
	const at = [0, 0, 0, 0]
	const lines = mappings.split(';', line + 1)
	let last
	for (const [number, segments] of lines.entries()) {
		at[0] = 0
		if (segments === '') continue
		for (const segment of segments.split(',')) {
			for (const [field, difference] of numbersOf(segment).entries()) if (field < at.length) at[field] += difference
			if (number < line) continue
			if (at[0] > column) return last
			last = { source: at[1], line: at[2], column: at[3] }
		}
	}
	return last
}

/** Each number is a sequence of digits of five bits, lowest first; the sixth bit says that more follow, the very lowest is the sign. */
function numbersOf(segment) {
	const numbers = []
	let value = 0
	let shift = 0
	for (const digit of segment) {
		const bits = digits.get(digit)
		value += (bits & 31) << shift
		shift += 5
		if (bits & 32) continue
		numbers.push(value & 1 ? -(value >> 1) : value >> 1)
		value = 0
		shift = 0
	}
	return numbers
}
