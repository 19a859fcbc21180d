/**
 * Makes the stacks of errors name positions in the sources. Each program of a bundle imports it first. A source map is read when
 * a stack is, and not kept: Node's own support keeps the maps in memory, 8 MiB more for a gateway.
 */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'

const folder = new URL('.', import.meta.url).href
/** Positions in the sources, by the position in the bundle. */
const found = new Map()
const FOUND_LIMIT = 2_000

Error.prepareStackTrace = (error, frames) => {
	/** Source maps for this stack, by the file of the bundle. */
	const maps = new Map()
	const lines = frames.map((frame) => `\n    at ${inSources(String(frame), frame, maps)}`)
	return `${headOf(error)}${lines.join('')}`
}

/** The first line, as V8 writes it. */
function headOf(error) {
	try {
		return Error.prototype.toString.call(error)
	} catch {
		return 'Error'
	}
}

function inSources(text, frame, maps) {
	const file = frame.getFileName()
	if (!file?.startsWith(folder)) return text
	const line = frame.getLineNumber()
	const column = frame.getColumnNumber()
	const place = `${file}:${line}:${column}`
	let source = found.get(place)
	if (source === undefined) {
		source = sourceOf(file, line, column, maps) ?? place
		if (found.size >= FOUND_LIMIT) found.clear()
		found.set(place, source)
	}
	return text.replace(place, () => source)
}

/** Undefined if the map cannot be read or has no such position. */
function sourceOf(file, line, column, maps) {
	try {
		const map = maps.get(file) ?? new SourceMap(JSON.parse(readFileSync(fileURLToPath(`${file}.map`), 'utf8')))
		maps.set(file, map)
		const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1)
		return originalSource && `${new URL(originalSource, file).href}:${originalLine + 1}:${originalColumn + 1}`
	} catch {
		return undefined
	}
}
