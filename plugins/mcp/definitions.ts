/** The tools of a server as it lists them: checked, since a list may hold anything, and with a digest of what they say. */
import { createHash } from 'node:crypto'
import { canonicalJson } from '../../core/util/canonical-json.ts'

export interface Definition {
	name: string
	description: string
	input_schema: Record<string, unknown>
	annotations: Record<string, unknown>
	/** sha256 over everything that a model, or whoever approves it, goes by. */
	digest: string
}

const NAME = /^[\x21-\x7e]{1,128}$/
const TOOLS = 256
const TOOL_LIMIT_CHARACTERS = 64 * 1024
const ALL_LIMIT_CHARACTERS = 1024 * 1024
const DEPTH = 32

/** What can be offered, in the server's order; and for each that cannot, one sentence. */
export function readDefinitions(listed: readonly unknown[]): { definitions: Definition[]; refused: string[] } {
	const definitions = new Map<string, Definition>()
	const refused: string[] = []
	let size = 0
	for (const raw of listed) {
		const problem = problemOf(raw)
		if (problem !== undefined) {
			refused.push(problem)
			continue
		}
		const definition = definitionOf(raw as Raw)
		const length = JSON.stringify(definition).length
		if (definitions.has(definition.name)) refused.push(`${definition.name} is listed twice`)
		else if (length > TOOL_LIMIT_CHARACTERS) refused.push(`${definition.name} has a definition that is too long`)
		else if (definitions.size === TOOLS || size + length > ALL_LIMIT_CHARACTERS)
			refused.push(`${definition.name} is one tool too many`)
		else {
			definitions.set(definition.name, definition)
			size += length
		}
	}
	return { definitions: [...definitions.values()], refused }
}

interface Raw {
	name: string
	title?: unknown
	description?: unknown
	inputSchema: Record<string, unknown>
	outputSchema?: unknown
	annotations?: unknown
	execution?: { taskSupport?: unknown }
}

function problemOf(raw: unknown): string | undefined {
	if (!isObject(raw) || typeof raw.name !== 'string' || !NAME.test(raw.name)) {
		return 'a tool has no name of 1 to 128 printable characters'
	}
	const { name, inputSchema, execution } = raw
	if (!isObject(inputSchema) || (inputSchema.type ?? 'object') !== 'object')
		return `${name} takes no object as arguments`
	if (!isObject(inputSchema.properties ?? {})) return `${name} describes its arguments in a way that is no JSON Schema`
	if (!isShallow(raw, DEPTH)) return `${name} has a definition that is nested too deep`
	if (isObject(execution) && execution.taskSupport === 'required')
		return `${name} works as a task only, which is not supported`
	return undefined
}

function definitionOf({ name, title, description, inputSchema, outputSchema, annotations }: Raw): Definition {
	const said = isObject(annotations) ? annotations : {}
	const text = [description, said.title, title].find((one) => typeof one === 'string' && one.trim() !== '')
	const known = { name, title, description, inputSchema, outputSchema, annotations: said }
	return {
		name,
		description: typeof text === 'string' ? text : `The tool ${name}.`,
		// Some APIs of models refuse an object without properties.
		input_schema: { ...inputSchema, type: 'object', properties: inputSchema.properties ?? {} },
		annotations: said,
		digest: createHash('sha256').update(canonicalJson(known)).digest('hex'),
	}
}

function isShallow(value: unknown, depth: number): boolean {
	if (typeof value !== 'object' || value === null) return true
	return depth > 0 && Object.values(value).every((one) => isShallow(one, depth - 1))
}

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}
