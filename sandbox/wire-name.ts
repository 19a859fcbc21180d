/** Names of tools for models, and lookup of tools by them. */

const WIRE_NAME_LIMIT = 64

/** A tool's name as `[a-zA-Z0-9_-]{1,64}`: other characters become `_`; a longer name ends in a hash. */
export function wireName(name: string): string {
	const safe = name.replace(/[^a-zA-Z0-9_-]/g, '_')
	if (safe.length <= WIRE_NAME_LIMIT) return safe
	let hash = 5381
	for (let at = 0; at < name.length; at++) hash = ((hash * 33) ^ name.charCodeAt(at)) >>> 0
	return `${safe.slice(0, WIRE_NAME_LIMIT - 9)}_${hash.toString(16).padStart(8, '0')}`
}

/** Finds a tool by its canonical name, by its name for models, or by an alias. */
export function findTool<T extends { name: string; aliases?: string[] | undefined }>(
	tools: readonly T[],
	name: string,
): T | undefined {
	return (
		tools.find((tool) => tool.name === name) ??
		tools.find((tool) => wireName(tool.name) === name) ??
		tools.find((tool) => tool.aliases?.includes(name))
	)
}
